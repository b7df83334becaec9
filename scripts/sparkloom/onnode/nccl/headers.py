"""Who says what in one line of a log: cut at every `host:pid:tid [device] NCCL INFO ` that stands in it.

A header is found by its fixed words and read from there a bounded way back: a line of any length costs its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

Key = tuple[str, int]  # host and process id
REACH = 500  # characters; a host's name has 253 at most
_LEVEL = re.compile("NCCL (?:INFO|WARN) ")
_TAIL = re.compile(
    r":(?P<pid>\d{1,18}):\d+ \[\d+\] (?:[\w./-]{1,200}:\d+ (?:\(\w{1,99}\) )?)?NCCL (?P<level>INFO|WARN) $"
)
_NAME = re.compile(r"[\w.-]*")
_BEGIN = re.compile("[A-Za-z0-9]")
_STAMP = re.compile(r"\s*\[\d{4}-\d\d-\d\d [\d:.]+\]\s*$")


class _Header(NamedTuple):
    host: str
    pid: int
    level: str
    colon: int  # behind the host
    end: int  # of the header


def messages(text: str, hosts: Mapping[int, Sequence[str]]) -> list[tuple[Key, str, str]]:
    """Process, level and words. `hosts`: the names by which processes of a number are known already."""
    headers = _headers(text)
    if not headers:
        return []
    named = [(header, _joined(header.host, hosts.get(header.pid, ()))) for header in headers]
    starts = [header.colon - len(host) for header, host in named]
    ends = [*starts[1:], len(text)]
    return [
        ((host, header.pid), header.level, _words(text[header.end : end]))
        for (header, host), end in zip(named, ends, strict=True)
    ]


@lru_cache(maxsize=1 << 14)  # a log repeats its lines
def _headers(text: str) -> tuple[_Header, ...]:
    found: list[_Header] = []
    floor = 0
    for level in _LEVEL.finditer(text):
        first = max(floor, level.start() - REACH)
        window = text[first : level.end()]
        tail = _TAIL.search(window)
        name = _name_before(window, tail.start()) if tail else ""
        if tail and name:
            found.append(_Header(name, int(tail["pid"]), tail["level"], first + tail.start(), level.end()))
            floor = level.end()
    return tuple(found)


def _name_before(window: str, end: int) -> str:
    run = _NAME.match(window[:end][::-1])
    name = run[0][::-1] if run else ""
    begin = _BEGIN.search(name)
    return name[begin.start() :] if begin else ""


def _words(text: str) -> str:
    return (_STAMP.sub("", text) if text.rstrip().endswith("]") else text).rstrip()


def _joined(host: str, known: Sequence[str]) -> str:
    """The host without the end of another line that stuck to it: `13000spark-1` is spark-1, once that is known.

    A hyphen joins the words of one name: `my-worker-1` is not worker-1.
    """
    for name in known:
        if host != name and host.endswith(name) and host[-len(name) - 1] != "-":
            return name
    return host
