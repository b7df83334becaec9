"""A checkpoint as the `model:` of a profile: plain data, and for each key the words of the files that say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base import amount
from sparkloom.base.visible import cut
from sparkloom.inputs import precision
from sparkloom.inputs.checkpoint import attention_facts
from sparkloom.inputs.checkpoint.attention_facts import given
from sparkloom.inputs.checkpoint.packing import Scheme
from sparkloom.inputs.checkpoint.parts import DeltaAttention, DeltaNet, Mamba2, Mlp
from sparkloom.inputs.checkpoint.reading import Checkpoint
from sparkloom.inputs.checkpoint.tensors import Group

# Groups of a checkpoint's tensors, by a profile's names for them.
PRECISIONS: dict[str, tuple[Group, ...]] = {
    "experts": ("experts",), "shared": ("shared",), "dense": ("dense",), "attention": ("attention",),
    "mamba": ("mamba",), "linear": ("linear",), "embedding": ("head", "embedding"),
}  # fmt: skip
# A plain feed-forward beside the experts (Gemma 4) is what others call a shared one: both are summed once.
BESIDE: dict[str, tuple[Group, ...]] = {"shared": ("shared", "dense"), "dense": ()}
PARTS: tuple[tuple[str, tuple[Group, ...]], ...] = (
    ("vision tower", ("vision",)), ("n-gram tables", ("tables",)), ("what joins the layers", ("other",)),
)  # fmt: skip
SMALL = 0.0005  # of the whole: what is less is no part worth a line
ALIKE = 0.97  # of a group's weights, from which on its precision is that one


@dataclass(frozen=True, slots=True)
class Drafted:
    """`sources` by the dotted key; `unknown` is what could not be said."""

    data: dict[str, Any]
    sources: dict[str, str]
    unknown: tuple[str, ...]
    otherwise: dict[str, float] = field(default_factory=dict)  # the same key as publishers count it, too


def of(found: Checkpoint) -> Drafted:
    shape = found.shape
    headers = f" and {found.contents.where}" if found.contents else ""
    data: dict[str, Any] = {
        "id": found.id,
        **given(revision=found.revision),
        "architecture": found.architecture,
        "parameters_b": _billions(found.parameters),
        "active_b": _billions(shape.active),
        "context": shape.context,
        **given(multimodal=shape.multimodal),
        "hidden": shape.hidden,
        "vocab": shape.vocab,
        **attention_facts.of(shape),
        **_forward(found),
        **_recurrent(found),
        **given(tied_embeddings=shape.tied),
        "precision": _precisions(found),
        "checkpoint": _checkpoint(found),
        **given(parts=_parts(found), mtp=found.drafts and _drafts(found)),
        "source": f"config.json{headers} of {found.where}",
    }
    return Drafted(data, _sources(found), (*found.unknown, *_approximate(found)), _otherwise(found))


def _otherwise(found: Checkpoint) -> dict[str, float]:
    """Publishers' round numbers leave out the layers that draft, and of what a token meets embedding and head."""
    shape = found.shape
    drafts = sum(tensor.elements for tensor in found.tensors if tensor.group == "draft")
    ends = shape.vocab * shape.hidden * (1 if shape.tied else 2)
    return {"parameters_b": _billions(found.parameters - drafts), "active_b": _billions(max(1, shape.active - ends))}


def _approximate(found: Checkpoint) -> list[str]:
    """Where a profile has no word for what the file says."""
    widths = {
        (layer.forward.inter, layer.forward.gated) for layer in found.shape.layers if isinstance(layer.forward, Mlp)
    }
    if len(widths) > 1 or any(not gated for _, gated in widths):
        return ["dense_inter is a mean that weighs the same: feed-forward layers differ, or have no gate"]
    return []


def _billions(number: float) -> float:
    """To the second place; a toy's to the first digits that it has."""
    return round(number / 1e9, 2) if number >= 1e7 else max(round(number / 1e9, 6), 1e-6)


def _forward(found: Checkpoint) -> dict[str, Any]:
    data: dict[str, Any] = {}
    experts = found.shape.experts()
    if experts:
        shared = experts.shared or (experts.dense.inter if experts.dense else 0)
        data = {"routed": experts.routed, "active": experts.active, "inter": experts.inter}
        data |= given(shared_inter=shared, latent=experts.latent) | ({} if experts.gated else {"gated": False})
    return given(experts=data, dense_inter=_dense_width(found))


def _dense_width(found: Checkpoint) -> int:
    """Of a feed-forward with three matrices: where layers differ, or have two, the width that weighs the same."""
    parts = [layer.forward for layer in found.shape.layers if isinstance(layer.forward, Mlp)]
    matrices = [part.inter * (3 if part.gated else 2) for part in parts]
    return round(sum(matrices) / len(matrices) / 3) if matrices else 0


def _recurrent(found: Checkpoint) -> dict[str, Any]:
    data: dict[str, Any] = {}
    # Of each kind the first layer's stays.
    for part in (layer.mixer for layer in reversed(found.shape.layers)):
        if isinstance(part, Mamba2):
            words = ("heads", "head_dim", "groups", "state", "conv")
            data["mamba"] = {word: getattr(part, word) for word in words}
        elif isinstance(part, DeltaNet | DeltaAttention):
            heads = {"k_heads": part.k_heads, "v_heads": part.v_heads, "head_dim": part.v_dim}
            data["linear"] = {**heads, "conv": part.conv}
    return data


def _precisions(found: Checkpoint) -> dict[str, str]:
    experts = found.shape.experts()
    groups = {**PRECISIONS, **(BESIDE if experts and experts.dense else {})}
    words = given(**{name: _precision(found, own) for name, own in groups.items()})
    words.setdefault("attention", found.packing.kept)
    words.setdefault("embedding", found.packing.kept)
    return words


def _precision(found: Checkpoint, groups: Iterable[Group]) -> str:
    """The one that nearly all weights of these groups have, or the bits that they take on average."""
    counts: Counter[str] = Counter()
    for tensor in found.tensors:
        if tensor.group in groups and (tensor.linear or tensor.group == "embedding"):
            scheme = found.packing.of(tensor)
            counts[_word(scheme) if scheme else tensor.always or found.packing.kept] += tensor.elements
    if not counts.total():
        return ""
    word, most = counts.most_common(1)[0]
    if most / counts.total() >= ALIKE:
        return _spelled(word)
    bits = sum(precision.bits(_spelled(word)) * number for word, number in counts.items()) / counts.total()
    return f"bits-{bits:.2f}"


def _word(scheme: Scheme) -> str:
    if scheme.precision == "fp8" and scheme.block[0] and scheme.block[0] == scheme.block[1]:
        return f"fp8-b{scheme.block[0]}"
    if scheme.precision == "fp8" and scheme.group == 32:
        return "mxfp8"
    if scheme.precision.startswith("int") and scheme.group:
        return f"{scheme.precision}-g{scheme.group}" + ("" if scheme.zeros else "-sym")
    return scheme.precision


def _spelled(word: str) -> str:
    return {"f32": "fp32", "f16": "fp16", "f8": "fp8"}.get(word, word)


def _checkpoint(found: Checkpoint) -> dict[str, Any]:
    size = _billions(found.bytes)
    return {"packing": found.packing.by, **given(mixed=found.packing.mixed, size_gb=size, gated=found.gated)}


def _parts(found: Checkpoint) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for name, groups in PARTS:
        size = sum(found.group_bytes.get(group, 0.0) for group in groups)
        if size >= SMALL * found.bytes and size >= 5e6:
            own = sum(tensor.elements for tensor in found.tensors if tensor.group in groups)
            split = groups == ("tables",)  # vLLM and SGLang deal the rows to the ranks
            counted = own >= 1e7 and round(own / 1e9, 3)
            parts[name] = {"size_gb": round(size / 1e9, 3), **given(parameters_b=counted, split=split)}
    return parts


def _drafts(found: Checkpoint) -> dict[str, Any]:
    """A layer of mixing and one of feeding forward are one draft layer where the model keeps them apart."""
    count = sum(1 for layer in found.shape.draft if layer.mixer is not None) or len(found.shape.draft)
    size, word = found.group_bytes.get("draft", 0.0), _precision(found, ("draft",))
    gb = size and (round(size / 1e9, 3) or 0.001)
    return {"layers": count, **given(size_gb=gb, precision=word != "bf16" and word)}


def _sources(found: Checkpoint) -> dict[str, str]:
    """The words of config.json behind each key, with their values."""
    topics = {
        "layers": ("layers", "sparse"), "attention": ("attention", "sparse"), "experts": ("experts",),
        "dense_inter": ("dense",), "mamba": ("mamba",), "linear": ("linear",), "mtp": ("mtp",),
        "parts": ("vision", "tables"), "hidden": ("model",),
    }  # fmt: skip
    sources = {}
    for key, names in topics.items():
        said = {word: value for name in names for word, value in found.config.sources.get(name, {}).items()}
        if said:
            sources[key] = "config.json: " + ", ".join(f"{word} {_short(value)}" for word, value in said.items())
    sources["precision"] = found.packing.where
    sources["checkpoint"] = _measured(found)
    sources["parameters_b"] = _counted(found)
    return sources


def _measured(found: Checkpoint) -> str:
    if found.contents is None:
        return "computed from config.json: no index and no weights were there"
    text = f"{found.contents.size:,} bytes in {amount.of(found.contents.files, 'file')}"
    if found.contents.tensors:
        text += f", {len(found.contents.tensors):,} tensors; config.json makes {found.disagrees:+.2%} of it"
    return text


def _counted(found: Checkpoint) -> str:
    groups: Counter[str] = Counter()
    for tensor in found.tensors:
        groups[tensor.group] += tensor.elements
    shown = ", ".join(f"{group} {number / 1e9:.2f}" for group, number in groups.most_common() if number >= 5e6)
    return f"{found.parameters:,} parameters by the widths (10^9: {shown})"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} entries]" if len(value) > 6 else str(value)
    return cut(f"{value}", 40)
