"""A checkpoint as its own files tell it: config.json through a reader, tensors through their headers, who packed it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.checkpoint import architectures, generic, headers, packing
from sparkloom.inputs.checkpoint.config import Config, parse
from sparkloom.inputs.checkpoint.headers import Contents
from sparkloom.inputs.checkpoint.packing import BITS, Packing
from sparkloom.inputs.checkpoint.shape import Shape
from sparkloom.inputs.checkpoint.sources import Folder, Hub
from sparkloom.inputs.checkpoint.tensors import Group, Tensor

HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
AGREE = 0.02  # of the bytes; beyond it the file's widths and its tensors do not describe the same model


@dataclass(frozen=True)
class Checkpoint:
    """Facts, each with where it was read; `unknown` is what the files do not say."""

    id: str
    revision: str | None
    where: str  # of the files
    architecture: str
    known: bool  # a reader is there for this architecture
    config: Config
    shape: Shape
    packing: Packing
    contents: Contents | None
    gated: bool = False
    generation: Mapping[str, Any] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @cached_property
    def predicted(self) -> dict[Group, dict[str, int]]:
        """Numbers per group and type, from config.json alone; draft layers only where the checkpoint has some."""
        groups: dict[Group, Counter[str]] = {}
        for tensor in self.tensors:
            groups.setdefault(tensor.group, Counter()).update(self.packing.stored(tensor))
        return {group: dict(counts) for group, counts in groups.items()}

    @cached_property
    def tensors(self) -> list[Tensor]:
        every = list(self.shape.tensors())
        return every if self.drafts else [tensor for tensor in every if tensor.group != "draft"]

    @cached_property
    def drafts(self) -> bool:
        """Whether the multi-token-prediction layers that config.json names are in the files."""
        if not self.shape.draft:
            return False
        if self.contents is None:
            return True
        return any(headers.group_of(name, len(self.shape.layers)) == "draft" for name in self.contents.names)

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in self.tensors)

    @cached_property
    def predicted_bytes(self) -> float:
        return sum(_bytes(counts) for counts in self.predicted.values())

    @cached_property
    def group_bytes(self) -> dict[Group, float]:
        """From the headers where there are any."""
        if self.contents is None or not self.contents.tensors:
            return {group: _bytes(counts) for group, counts in self.predicted.items()}
        own = {headers.module(tensor.name): tensor.group for tensor in self.shape.tensors()}
        count, sums = len(self.shape.layers), Counter[Group]()
        for stored in self.contents.tensors:
            name = headers.module(headers.starred(stored.name))
            sums[own.get(name) or headers.group_of(stored.name, count)] += stored.bytes
        return {group: float(size) for group, size in sums.items()}

    @property
    def bytes(self) -> float:
        """Of the files with weights, or what config.json makes of them."""
        return float(self.contents.size) if self.contents and self.contents.size else self.predicted_bytes

    @property
    def disagrees(self) -> float:
        """By how much config.json's widths miss the tensors' bytes; 0 where nothing can be compared."""
        if self.contents is None or not self.contents.size:
            return 0.0
        return self.predicted_bytes / self.contents.weight - 1


def _bytes(counts: Mapping[str, int]) -> float:
    return sum(number * BITS.get(kind, 16) / 8 for kind, number in counts.items())


def read(model: str, revision: str | None = None) -> Checkpoint:
    """A folder or a config.json where `model` is one, else a hub id."""
    path = Path(model)
    if path.exists():
        return of(Folder(path), _named(path))
    if not HUB_ID.fullmatch(model) or ".." in model:
        message = f"neither a folder of this machine nor a hub id; write org/name as on the model's page{_near(path)}"
        raise InputError.single(model or "MODEL", message, rule="missing-file")
    return of(Hub(model, revision), model)


def of(source: Folder | Hub, name: str) -> Checkpoint:
    raw = source.read("config.json")
    if raw is None:
        message = f"has no config.json{_instead(source.sizes)}"
        raise InputError.single(source.shown, message, rule="missing-file")
    file = str(source.config) if isinstance(source, Folder) else f"{source.shown}/config.json"
    config = Config(parse(raw, file), file)
    packed = packing.read(config, _mapping(source, "hf_quant_config.json"))
    contents = headers.of(source)
    if not (said := config.items("architectures")):
        raise config.missing("architectures")
    architecture = str(said[0])
    reader = architectures.of(architecture)
    shape = reader.read(config) if reader else generic.read(config, contents)
    checkpoint = Checkpoint(
        id=name,
        revision=source.commit,
        where=f"{source.shown}, commit {source.commit}" if source.commit else source.shown,
        architecture=architecture,
        known=reader is not None,
        config=config,
        shape=shape,
        packing=packed,
        contents=contents,
        gated=isinstance(source, Hub) and source.gated,
        generation=_mapping(source, "generation_config.json"),
    )
    return _with_doubts(checkpoint)


def _mapping(source: Folder | Hub, name: str) -> dict[str, Any]:
    raw = source.read(name)
    return parse(raw, f"{source.shown}/{name}") if raw else {}


def _with_doubts(found: Checkpoint) -> Checkpoint:
    said = [*found.shape.unknown, *found.packing.unknown]
    if not found.known:
        said.append(
            f"no reader for '{found.architecture}': widths under the usual words of config.json, the rest from the "
            "tensors' names and shapes; check every figure"
        )
    if found.contents is None:
        said.append("no index and no weights: bytes are computed from config.json")
    elif found.shape.draft and not found.drafts:
        said.append("config.json names multi-token-prediction layers, the files have none")
    if abs(found.disagrees) > AGREE and found.contents:
        said.append(
            f"config.json makes {found.predicted_bytes / 1e9:.1f} GB of weights, {found.contents.where} "
            f"{found.contents.weight / 1e9:.1f} GB ({found.disagrees:+.1%}): a part was not understood"
        )
    return replace(found, unknown=tuple(said)) if said else found


def _named(path: Path) -> str:
    """A folder's model: by the hub's cache, by our store (org--name), else by the folder's own name."""
    for part in (path.name, *(parent.name for parent in path.resolve().parents)):
        org, dashes, name = part.removeprefix("models--").partition("--")
        if dashes and HUB_ID.fullmatch(f"{org}/{name}"):
            return f"{org}/{name}"
    return f"local/{re.sub(r'[^A-Za-z0-9_.-]', '-', path.resolve().name).strip('.-') or 'model'}"


def _near(path: Path) -> str:
    with suppress(OSError, ValueError):  # no folder there, or none that may be listed
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
        return did_you_mean(path.name, beside)
    return ""


def _instead(sizes: Mapping[str, int]) -> str:
    gguf = sorted(name for name in sizes if name.endswith(".gguf"))
    if gguf:
        return (
            f", only GGUF files ({gguf[0]}, ...): name the model that they were made of, and write model.file by hand"
        )
    return "; name a model's repository, with its weights for an engine"
