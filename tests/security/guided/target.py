"""What a guided fuzzer needs of a parser: how it is called, what it may refuse with, what to begin with."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

SCRATCH = Path(tempfile.mkdtemp(prefix="sparkloom-fuzz-", dir="/dev/shm"))  # for parsers that take a path
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


class Target(NamedTuple):
    """`reads` raises one of `refusals` where it refuses; any other exception is a finding. `words`: what the format
    has, for the fuzzer's dictionary."""

    reads: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    refusals: tuple[type[BaseException], ...] = ()
    words: tuple[str, ...] = ()


JSON_WORDS = ('{"', '":', "[]", "{}", "null", "true", "-1", "1e999", "NaN", "Infinity", "[[[[", '"\\ud800"', "9" * 20)
