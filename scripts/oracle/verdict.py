"""Asks an engine's parser about one command line and reports what it said."""

from __future__ import annotations

import argparse
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Rejected(Exception):
    """The engine's own parser refuses the command line; the text is the engine's."""


@dataclass
class Verdict:
    """``values`` holds what the engine would run with, as plain data, and is empty when the command line is refused."""

    accepted: bool
    error: str | None = None
    deprecated: list[str] = field(default_factory=list)
    abbreviated: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def as_dict(self, with_values: bool = False) -> dict[str, Any]:
        result = asdict(self)
        if not with_values:
            del result["values"]
        return result


class RaisingParser(argparse.ArgumentParser):
    """Mixed into the engine's parser class: refuses by exception, and remembers which flags were only a prefix."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.abbreviated: list[str] = []
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise Rejected(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise Rejected(message or "exits without serving")

    def _print_message(self, message: str, file: Any = None) -> None:
        """--help prints pages that nobody asked the oracle for."""

    def _get_option_tuples(self, option_string: str) -> Any:
        matches = super()._get_option_tuples(option_string)
        if len(matches) == 1 and matches[0][1] != option_string.split("=")[0]:
            given = option_string.split("=")[0]
            self.abbreviated.append(f"{given} -> {matches[0][1]}")
        return matches


def judge(
    parsers: Sequence[RaisingParser], parse: Callable[[list[str]], argparse.Namespace], argv: list[str]
) -> Verdict:
    """``parsers``: those whose abbreviations count (with subcommands, the subcommand's)."""
    for parser in parsers:
        parser.abbreviated.clear()
    with _listening() as messages:
        try:
            values = {key: plain(value) for key, value in vars(parse(list(argv))).items()}
            error = None
        except Rejected as refusal:
            values, error = {}, str(refusal).strip()
        except (ValueError, TypeError, AssertionError, KeyError, IndexError, OSError) as failure:
            # Not argparse's wording, but still the engine's code saying no (a type callable or a check after parsing).
            values, error = {}, f"{type(failure).__name__}: {failure}"
    deprecated = [text for text in messages if "deprecated" in text.lower() or "will be removed" in text]
    return Verdict(
        accepted=error is None,
        error=error,
        deprecated=deprecated,
        abbreviated=sorted({name for parser in parsers for name in parser.abbreviated}),
        warnings=[text for text in messages if text not in deprecated],
        values=values,
    )


def plain(value: Any) -> Any:
    """A value as JSON can carry it; an object of the engine becomes its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(_COLOUR.sub("", record.getMessage()).strip())


@contextmanager
def _listening() -> Iterator[list[str]]:
    """What the engine logs or warns while it parses."""
    root, listener = logging.getLogger(), _Listener()
    root.addHandler(listener)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield listener.texts
        listener.texts.extend(str(item.message) for item in caught)
    finally:
        root.removeHandler(listener)
