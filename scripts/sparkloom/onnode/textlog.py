"""Logs from files and pipes, whatever is in them: plain or gzip, of any size, with lines of any length.

Standard library only. What is no log is refused by name: a folder, a device that never ends, an empty or a binary file.
"""

from __future__ import annotations

import gzip
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from sparkloom.base.errors import InputError

BLOCK = 1 << 20
SAMPLE = 1 << 16
LONGEST = 1 << 16  # of a line; engines print no longer ones, and what follows tells nothing new
MOST = 4 << 30  # bytes; a log beyond is no log
_GZIP = b"\x1f\x8b"
_ODD = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})  # control characters that no terminal log holds


def lines(path: Path, words: Sequence[bytes] = (b"",)) -> Iterator[str]:
    """Lines without their ends that hold one of the words, each cut at LONGEST; `-` is standard input."""
    rest, cut = b"", False
    speaks = re.compile(b"|".join(map(re.escape, words))).search
    for block in blocks(path):
        data, first = rest + block, cut
        end = data.rfind(b"\n")
        whole, rest = (data[:end], data[end + 1 :]) if end >= 0 else (b"", data)
        cut = cut and end < 0  # the line that was cut goes on
        if whole and speaks(whole):
            for part in whole.split(b"\n")[first:]:
                if speaks(part):
                    yield part[:LONGEST].decode("utf-8", "replace")
        if cut:
            rest = b""
        elif len(rest) > LONGEST:
            yield rest[:LONGEST].decode("utf-8", "replace")
            rest, cut = b"", True
    if rest and not cut:
        yield rest.decode("utf-8", "replace")


def tail(path: Path, most: int) -> str:
    """The last `most` bytes as text: a cause stands near the end."""
    kept: list[bytes] = []
    size = 0
    for block in blocks(path):
        kept.append(block)
        size += len(block)
        while size - len(kept[0]) >= most:
            size -= len(kept.pop(0))
    return b"".join(kept)[-most:].decode("utf-8", "replace")


def blocks(path: Path) -> Iterator[bytes]:
    """What stands in the log, unpacked, in blocks; InputError where it is none."""
    name = "standard input" if str(path) == "-" else str(path)
    total = 0
    try:
        with _opened(path, name) as source:
            block = source.read(BLOCK)
            _refuse_strange(block[:SAMPLE], name)
            while block:
                total += len(block)
                if total > MOST:
                    raise _unusable(name, f"holds more than {MOST >> 30} GiB; give the part around the failure")
                yield block
                block = source.read(BLOCK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _unusable(name, f"is a damaged gzip file ({error}); unpack what can be unpacked: zcat -f") from None
    except OSError as error:
        raise _unusable(name, f"cannot be read: {error.strerror or error}") from None


@contextmanager
def _opened(path: Path, name: str) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield _unpacked(sys.stdin.buffer)
        return
    mode = path.stat().st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not _terminal(path)):
        raise _unusable(name, "is a device, which never ends; expected a log file")
    with path.open("rb") as source:
        yield _unpacked(source)


def _terminal(path: Path) -> bool:
    with path.open("rb") as source:
        return source.isatty()


def _unpacked(source: IO[bytes]) -> IO[bytes]:
    peek = getattr(source, "peek", None)
    head: bytes = peek(2)[:2] if peek else b""
    return cast("IO[bytes]", gzip.open(source)) if head == _GZIP else source


def _refuse_strange(sample: bytes, name: str) -> None:
    if not sample.strip(b" \t\r\n\0"):
        what = "holds nothing but zero bytes" if sample.strip() else "is empty"
        raise _unusable(name, f"{what}; expected what an engine printed", rule="empty-input")
    text = sample.decode("utf-8", "replace")
    odd = text.count("\ufffd") + len(sample) - len(sample.translate(None, _ODD))
    if odd > max(32, len(text) / 5):
        raise _unusable(name, "is no text; expected a log, plain or gzip", rule="binary-input")


def _unusable(name: str, message: str, *, rule: str = "unreadable") -> InputError:
    return InputError.single(name, message, rule=rule)
