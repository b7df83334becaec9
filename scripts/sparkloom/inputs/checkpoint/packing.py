"""How a packer stored the weights: what `quantization_config` and `hf_quant_config.json` say of each matrix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cache
from typing import Any

from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.tensors import Tensor

BITS = {
    "f64": 64, "i64": 64, "f32": 32, "i32": 32, "u32": 32, "bf16": 16, "f16": 16, "i16": 16, "u16": 16,
    "f8": 8, "e8m0": 8, "u8": 8, "i8": 8, "bool": 8, "f4": 4,
}  # fmt: skip
WORDS = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to store a matrix."""

    precision: str  # as a profile says it
    bits: int
    group: int = 0  # weights of a row that share a scale; 0 = none do
    block: tuple[int, int] = (0, 0)  # rows and columns that share one
    scale: str = "f32"
    zeros: bool = False  # a zero point beside each scale
    scalars: int = 0  # further numbers per matrix, in f32

    def stored(self, rows: int, columns: int) -> dict[str, int]:
        """Numbers by type: the packed weights count as bytes."""
        kind = "u8" if self.bits < 8 else "f8" if self.precision != "int8" else "i8"
        counts = Counter({kind: rows * columns * self.bits // 8})
        if self.group:
            scales = rows * -(-columns // self.group)
        elif self.block[0]:
            scales = -(-rows // self.block[0]) * -(-columns // self.block[1])
        else:
            scales = 1
        counts[self.scale] += scales
        if self.zeros:
            counts["u8"] += scales * self.bits // 8
        if self.scalars:
            counts["f32"] += self.scalars
        return counts


NVFP4 = Scheme("nvfp4", 4, group=16, scale="f8", scalars=2)
FP8 = Scheme("fp8", 8, scalars=1)
MXFP4 = Scheme("mxfp4", 4, group=32, scale="e8m0")
MXFP8 = Scheme("fp8", 8, group=32, scale="e8m0")
# By the words of ModelOpt's `quant_algo`.
ALGORITHMS = {
    "NVFP4": NVFP4, "W4A16_NVFP4": NVFP4, "NVFP4_AWQ": NVFP4, "W4A8_NVFP4_FP8": NVFP4,
    "FP8": FP8, "FP8_PER_CHANNEL_PER_TOKEN": FP8, "FP8_PB_WO": replace(FP8, block=(128, 128), scalars=0),
    "MXFP8": MXFP8, "MXFP4": MXFP4,
    "W4A8_MXFP4_FP8": MXFP4, "W4A16_MXFP4": MXFP4,
    "W4A16_AWQ": Scheme("int4", 4, group=128, scale="bf16"), "W4A8_AWQ": Scheme("int4", 4, group=128, scale="bf16"),
}  # fmt: skip
# What no packer touches unless it says so: the ends, routers, and towers beside the language model.
UNTOUCHED = re.compile(
    r"(^|\.)(lm_head|head|gate|router(\.proj)?|shared_expert_gate|embed_tokens|eh_proj|fc)$"
    r"|(^|\.)(visual|vision\w*|aligner|multi_modal_projector|mm_projector|patch_merge_mlp|embed_vision)\."
)
Choice = Callable[[str], "Scheme | None"]  # by a module's name


@dataclass(frozen=True)
class Packing:
    """Who packed the checkpoint, how each matrix is stored, and what of the file was not understood."""

    by: str  # modelopt, compressed-tensors, fp8, bf16, awq, gptq, auto-round, mxfp4
    kept: str  # the type of everything else
    choose: Choice
    where: str  # which words of which file say so
    mixed: bool = False
    unknown: tuple[str, ...] = ()

    def of(self, tensor: Tensor) -> Scheme | None:
        """None = as it was trained."""
        if not tensor.linear or tensor.always or len(tensor.shape) != 2 or tensor.group == "embedding":
            return None
        return self.choose(tensor.name.removesuffix(".weight"))

    def stored(self, tensor: Tensor) -> dict[str, int]:
        """Numbers of a tensor (and of its scales) by type."""
        scheme = self.of(tensor)
        if scheme is None:
            scales = {"e8m0": tensor.elements // tensor.scaled} if tensor.scaled else {}
            return {tensor.always or self.kept: tensor.elements, **scales}
        rows, columns = tensor.shape
        return {kind: number * tensor.copies for kind, number in scheme.stored(rows, columns).items()}


def read(config: Config, beside: Mapping[str, Any]) -> Packing:
    """From config.json, or from hf_quant_config.json where that alone says it."""
    kept = WORDS.get(config.text.text_of("dtype", "torch_dtype") or config.text_of("dtype", "torch_dtype"), "bf16")
    said = config.section("quantization_config") or config.text.section("quantization_config")
    own = beside.get("quantization")
    if said is None and isinstance(own, dict):
        return _modelopt(Config({**own, "quant_method": "modelopt"}, "hf_quant_config.json", "quantization."), kept)
    if said is None:
        return Packing("bf16", kept, lambda _name: None, "config.json has no quantization_config")
    method = said.text_of("quant_method") or ("modelopt" if said.value("quant_algo") else "")
    if method == "fp8":
        return _fp8(said, kept, said.text_of("expert_dtype") or config.text_of("expert_dtype"))
    readers: dict[str, Callable[[Config, str], Packing]] = {
        "modelopt": _modelopt, "compressed-tensors": _compressed, "mxfp4": _mxfp4, "awq": _grouped, "gptq": _grouped,
        "auto-round": _grouped, "autoround": _grouped,
    }  # fmt: skip
    if method not in readers:
        shown = f"quantization_config.quant_method is '{method}': how its matrices are stored is not known here"
        return Packing(method or "unknown", kept, lambda _name: None, shown, unknown=(shown,))
    return readers[method](said, kept)


def _modelopt(said: Config, kept: str) -> Packing:
    algorithm = said.text_of("quant_algo")
    outside = _matcher(said.items("exclude_modules") or said.items("ignore"))
    unknown: list[str] = []
    listed = said.value("quantized_layers")
    if isinstance(listed, dict):
        schemes = {str(name): _algorithm(entry, unknown) for name, entry in listed.items()}
        return Packing("modelopt", kept, _listed(schemes), f"{said.path}quantized_layers", True, tuple(unknown))
    scheme = _algorithm({"quant_algo": algorithm, "group_size": said.maybe("group_size")}, unknown)
    choose = _but(outside, lambda _name: scheme)
    where = f"{said.path}quant_algo {algorithm}, without exclude_modules"
    return Packing("modelopt", kept, choose, where, unknown=tuple(unknown))


def _algorithm(entry: Any, unknown: list[str]) -> Scheme | None:
    word = str(entry.get("quant_algo", "")) if isinstance(entry, dict) else ""
    scheme = ALGORITHMS.get(word)
    if scheme is None:
        text = f"quant_algo '{word}' is not known here; its matrices are counted as they were trained"
        if text not in unknown:
            unknown.append(text)
        return None
    size = entry.get("group_size")
    return replace(scheme, group=size) if isinstance(size, int) and size > 0 and scheme.group else scheme


def _listed(schemes: Mapping[str, Scheme | None]) -> Choice:
    """A list of modules; an entry for a block of experts stands for each of them."""

    def choose(name: str) -> Scheme | None:
        if name in schemes:
            return schemes[name]
        before, star, after = name.partition(".*.")
        if not star:
            return None
        return schemes.get(before) or schemes.get(f"{before}.0.{after}")

    return choose


def _fp8(said: Config, kept: str, experts: str) -> Packing:
    """In blocks, as DeepSeek does; V4's experts are in four bits, or repacked by a list of layers."""
    size = said.items("weight_block_size")
    block = (size[0], size[1]) if len(size) == 2 and all(type(one) is int and one > 0 for one in size) else (0, 0)
    scaled = "e8m0" if said.text_of("scale_fmt") == "ue8m0" and experts else "f32"
    scheme = replace(FP8, block=block, scale=scaled, scalars=0 if block[0] else 1)
    unknown: list[str] = []
    outside = _matcher(said.items("modules_to_not_convert", "ignored_layers"))
    listed = said.value("quantized_layers")
    entries = listed.items() if isinstance(listed, dict) else ()
    repacked = _listed({str(name): _algorithm(entry, unknown) for name, entry in entries})

    def choose(name: str) -> Scheme | None:
        return repacked(name) or (MXFP4 if experts == "fp4" and ".experts." in name else scheme)

    shape = f", blocks of {block[0]} x {block[1]}" if block[0] else ""
    shown = f"{said.path}quant_method fp8{shape}" + (", expert_dtype fp4" if experts == "fp4" else "")
    return Packing("fp8", kept, _but(outside, choose), shown, experts == "fp4" or bool(entries), tuple(unknown))


def _compressed(said: Config, kept: str) -> Packing:
    outside, unknown = _matcher(said.items("ignore"), below=False), []
    own: list[tuple[Callable[[str], bool], Scheme]] = []  # before what is said of every matrix
    every: Scheme | None = None
    listed = said.section("config_groups")
    for name in listed.data if listed else ():
        group = listed.section(name) if listed else None
        weights = group.section("weights") if group else None
        if group is None or weights is None:
            continue
        scheme = _scheme_of(weights)
        if scheme is None:
            unknown.append(f"config_groups.{name}.weights is of a kind that is not known here")
            continue
        targets = group.items("targets")
        if any(str(target) == "Linear" for target in targets):
            every = scheme
        else:
            own.append((_matcher(targets), scheme))

    def choose(name: str) -> Scheme | None:
        return next((scheme for matches, scheme in own if matches(name)), every)

    where = f"{said.path}config_groups, without ignore"
    return Packing("compressed-tensors", kept, _but(outside, choose), where, bool(own and every), tuple(unknown))


def _scheme_of(weights: Config) -> Scheme | None:
    bits, kind, group = weights.maybe("num_bits") or 0, weights.text_of("type"), weights.maybe("group_size") or 0
    if kind == "float" and bits == 4:
        return replace(NVFP4, group=group or 16) if group == 16 else replace(MXFP4, group=group or 32)
    if kind == "float" and bits == 8:
        block = weights.items("block_structure")
        return replace(FP8, block=(int(block[0]), int(block[1])) if len(block) == 2 else (0, 0))
    if kind == "int" and bits in (4, 8):
        return Scheme(f"int{bits}", bits, group=group, scale="bf16", zeros=weights.value("symmetric") is False)
    return None


def _grouped(said: Config, kept: str) -> Packing:
    """AWQ, GPTQ and AutoRound: integers with a scale, and perhaps a zero point, per group of a column's weights."""
    bits, group = said.maybe("bits", "w_bit") or 4, said.maybe("group_size", "q_group_size") or 0
    scheme = Scheme(f"int{bits}", bits, group=group, scale="f16", zeros=said.value("sym", "zero_point") is not True)
    outside = _matcher(said.items("modules_to_not_convert"))
    method = said.text_of("quant_method").replace("autoround", "auto-round")
    where = f"{said.path}quant_method {method}, {bits} bits, groups of {group}"
    return Packing(method, kept, _but(outside, lambda _name: scheme), where)


def _mxfp4(said: Config, kept: str) -> Packing:
    where = f"{said.path}quant_method mxfp4: experts"
    return Packing("mxfp4", kept, lambda name: MXFP4 if ".experts." in name else None, where)


def _but(outside: Callable[[str], bool], choose: Choice) -> Choice:
    """Of all but what is left out, or never packed."""
    return lambda name: None if outside(name) or UNTOUCHED.search(name) else choose(name)


def _matcher(patterns: Iterable[Any], *, below: bool = True) -> Callable[[str], bool]:
    """Names, names with wildcards, or regular expressions (`re:`). `below`: a name stands for all that is under it."""
    exact, starred, expressions = set(), [], []
    for item in map(str, patterns):
        if item.startswith("re:"):
            with suppress(re.error):  # no program could use it either
                expressions.append(re.compile(item[3:]))
        elif "*" in item:
            starred.append(item)
        else:
            exact.add(item)

    # One expression for all: a list names every layer, and each of a thousand matrices asks.
    starry = (
        re.compile("|".join(f"{translate(item)}|{translate(f'{item}.*')}" for item in starred)) if starred else None
    )

    @cache
    def matches(name: str) -> bool:
        name = name.replace(".*.", ".0.")
        above = name
        while above:
            if above in exact or (below and above.rpartition(".")[2] in exact):
                return True
            above = above.rpartition(".")[0] if below else ""
        if starry is not None and starry.match(name):
            return True
        return any(expression.match(name) for expression in expressions)

    return matches
