"""What a checkpoint holds, from its index and the headers of its files: names, types and shapes; never the numbers."""

from __future__ import annotations

import re
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from sparkloom.base import amount, document
from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint.config import parse
from sparkloom.inputs.checkpoint.sources import Source
from sparkloom.inputs.checkpoint.tensors import Group

INDEX = "model.safetensors.index.json"
FIRST = 100_000  # bytes of a file that are asked for at once; most headers are shorter
LARGEST = 100_000_000  # bytes of a header: the format's own limit
AT_ONCE = 16
_READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
TYPES: dict[str, str] = _READ["types"]
_GROUPS: list[tuple[re.Pattern[str], Group]] = [(re.compile(pattern), group) for pattern, group in _READ["groups"]]
_LAYER = re.compile(r"\.?layers?\.(\d+)\.|\.h\.(\d+)\.|blk\.(\d+)\.")
_PACKED = re.compile(rf"(\.weight)?(\.|_)({'|'.join(_READ['packed'])})$")


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor as it lies in a file."""

    name: str
    kind: str  # bf16, f8, u8, ...
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Contents:
    """All tensors, or only their names where no header could be read."""

    tensors: tuple[Stored, ...]
    names: frozenset[str]
    size: int  # bytes of the files with weights, headers included
    files: int
    where: str

    @property
    def weight(self) -> int:
        """Bytes of the tensors themselves."""
        return sum(tensor.bytes for tensor in self.tensors) or self.size


def of(source: Source) -> Contents | None:
    """None where there are neither an index nor a file with weights."""
    listed = source.read(INDEX)
    index = parse(listed, f"{source.shown}/{INDEX}") if listed else {}
    mapping = index.get("weight_map")
    named = {str(k): str(v) for k, v in mapping.items()} if isinstance(mapping, dict) else {}
    there = [name for name in source.sizes if name.endswith(".safetensors") and "/" not in name]
    files = sorted(set(named.values()) & set(there)) or sorted(there if not named else ())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tensors = tuple(chain.from_iterable(pool.map(partial(_header, source), files)))
    size = sum(source.sizes[name] for name in files)
    if not named and not tensors:
        return None
    if not tensors:
        told = index["metadata"].get("total_size") if isinstance(index.get("metadata"), dict) else 0
        size = int(told) if isinstance(told, int | float) and 0 <= told < 1e15 else 0
        return Contents((), frozenset(named), size, len(set(named.values())), f"{INDEX}, its total_size")
    names = frozenset(tensor.name for tensor in tensors)
    return Contents(tensors, names, size, len(files), f"the headers of {amount.of(len(files), 'safetensors file')}")


def _header(source: Source, name: str) -> list[Stored]:
    file = f"{source.shown}/{name}"
    first = source.part(name, 0, min(FIRST, source.sizes[name]))
    if len(first) < 8:
        raise _refusal(file, f"has {len(first)} bytes: no safetensors file")
    (length,) = struct.unpack("<Q", first[:8])
    if length > min(LARGEST, source.sizes[name]):
        raise _refusal(file, f"says that its header has {length:,} bytes: no safetensors file")
    raw = first[8 : 8 + length]
    if len(raw) < length:
        raw += source.part(name, 8 + len(raw), 8 + length)
    return [_stored(file, str(key), entry) for key, entry in parse(raw, file).items() if key != "__metadata__"]


def _stored(file: str, name: str, entry: Any) -> Stored:
    try:
        shape = tuple(int(size) for size in entry["shape"])
        start, stop = entry["data_offsets"]
        return Stored(name, TYPES.get(entry["dtype"], str(entry["dtype"]).lower()), shape, int(stop) - int(start))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _refusal(file, f"its header describes '{name[:80]}' in a way that no safetensors file does") from None


def _refusal(file: str, message: str) -> InputError:
    return InputError.single(file, message, rule="bad-header")


def module(name: str) -> str:
    """The matrix that a tensor belongs to: `a.b.weight_scale` and `a.b.weight` are of `a.b`."""
    return _PACKED.sub("", name).removesuffix(".weight")


def starred(name: str) -> str:
    """An expert's number as `*`, as readers name them."""
    return re.sub(r"\.experts\.\d+\.", ".experts.*.", name)


def group_of(name: str, layers: int | None = None) -> Group:
    """By the name alone; `layers`: what is beyond the last of them drafts."""
    numbered = layer_of(name)
    if layers is not None and numbered is not None and numbered >= layers and not _GROUPS[0][0].search(name):
        return "draft"
    return next((group for pattern, group in _GROUPS if pattern.search(name)), "other")


def layer_of(name: str) -> int | None:
    found = _LAYER.search(name)
    return int(next(part for part in found.groups() if part)) if found else None
