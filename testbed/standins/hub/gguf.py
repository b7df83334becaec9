"""The GGUF container, version 3, as far as a small model needs it: values with types, tensors at aligned places."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

F32, BF16 = 0, 30  # of ggml's types
ALIGNMENT = 32
Value = bool | int | float | str | Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]  # rows first; the file has it the other way round
    kind: int
    data: bytes


def write(path: Path, values: Mapping[str, Value], tensors: Sequence[Tensor]) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_text(name) + _value(value) for name, value in values.items())
    offset = 0
    for tensor in tensors:
        sides = struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape))
        head += _text(tensor.name) + struct.pack("<I", len(tensor.shape)) + sides
        head += struct.pack("<IQ", tensor.kind, offset)
        offset += len(_padded(tensor.data))
    path.write_bytes(_padded(head) + b"".join(_padded(tensor.data) for tensor in tensors))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    """Its type's number, then itself: bool 7, uint32 4, float32 6, string 8, array 9 (of strings, or int32: 5)."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if all(isinstance(each, str) for each in value):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(str(each)) for each in value)
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
