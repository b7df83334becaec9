"""A library's kernels for other GPUs, blanked: they are most of it, and zeros pack to nothing.

A fat binary is a header (magic, version, size of the header, size of all) and entries (kind, version, size of the
header, size of the payload, ..., the GPU's architecture). The driver loads the entry of its own GPU and reads no other.
"""

from __future__ import annotations

import struct
from pathlib import Path

MAGIC = b"\x50\xed\x55\xba"
HEAD, ENTRY, ARCHITECTURE = "<IHHQ", "<HHIQ", 28


def thin(library: Path, keep: int) -> int:
    """Blanks every kernel but those of one architecture (90: Hopper); the bytes that went."""
    data, at, gone = bytearray(library.read_bytes()), 0, 0
    while (at := data.find(MAGIC, at)) >= 0:
        _, version, head, size = struct.unpack_from(HEAD, data, at)
        if (version, head) != (1, struct.calcsize(HEAD)) or at + head + size > len(data):
            at += len(MAGIC)
            continue
        entry, end = at + head, at + head + size
        while entry < end:
            _, _, own, payload = struct.unpack_from(ENTRY, data, entry)
            if struct.unpack_from("<I", data, entry + ARCHITECTURE)[0] != keep:
                data[entry + own : entry + own + payload] = bytes(payload)
                gone += payload
            entry += own + payload
        at = end
    if gone:
        library.write_bytes(data)
    return gone
