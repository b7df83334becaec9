"""Errors that a person can act on: every one names a file, a place, what was found and what to write."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # `bench` reads errors, and does without what a dataclass loads
    from sparkloom.base.finding import Finding


class Problem(NamedTuple):
    """One thing wrong with an input. `rule` groups problems of one kind (`unknown-key`, `wrong-type`, ...). `line` is 0
    where the whole file is meant, or what is no file: an option, a machine."""

    file: str
    line: int
    column: int
    message: str
    rule: str = "input"

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.rule}]"

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def finding(self, fix: str) -> Finding:
        """Where unusable input is one thing among others."""
        from sparkloom.base.finding import Finding

        return Finding(self.where, self.rule, self.message, "", fix)


class InputError(Exception):
    """Unusable input: the command line prints the problems and exits with 2."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def single(cls, file: str, message: str, *, line: int = 0, column: int = 0, rule: str = "input") -> InputError:
        return cls([Problem(file, line, column or int(line > 0), message, rule)])


class Refused(Exception):
    """A render or deploy that error findings stop; `force` overrides by name."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("error findings: " + ", ".join(sorted({f.rule for f in findings})))


def full(error: BaseException, unnamed: str = "a file") -> str:
    """Of a full file system: which file did not go there, and what to do; empty for any other error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    folder = f" {Path(error.filename).parent}" if error.filename else ""
    cure = f"`df -h{folder}` shows its file system: make room there, then the same command again"
    return f"{error.filename or unnamed}: {error.strerror}; {cure}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or the known words when there are few, or nothing."""
    import difflib

    words = sorted({str(candidate) for candidate in known})
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known here: {', '.join(words)}" if 0 < len(words) <= 24 else ""
