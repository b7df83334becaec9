"""Judges a command line by a catalog, with the rules of the engines' parsers but without their luck.

All problems at once, where the engine stops at the first; and a flag that is only a prefix of one is named, because
what is unambiguous in one release is not in the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sparkloom.inputs.catalogs import hints
from sparkloom.inputs.catalogs.catalog import Catalog, Flag
from sparkloom.inputs.catalogs.flagtypes import Dialect, FlagError, FlagProblem

_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")


@dataclass(slots=True)
class Use:
    """One flag as it stands on the command line."""

    flag: Flag
    spelled: str
    values: list[str]
    attached: bool = False  # written as --flag=value
    problems: list[FlagProblem] = field(default_factory=list)  # of how it is spelled


@dataclass(slots=True)
class Stray:
    """Words that are no flag of the release: an unknown one with what stands behind it, or a word that is nobody's."""

    words: list[str]
    problems: list[FlagProblem] = field(default_factory=list)
    seat: bool = False  # a word of its own that the program takes, as the model's name


def check(catalog: Catalog, argv: Sequence[str]) -> list[FlagProblem]:
    """Everything that is wrong with a command line, with or without the words that start the engine."""
    catalog = catalog.command(argv)
    words, problems = catalog.dialect.normalise(without_entry(catalog, argv))
    uses: list[Use] = []
    for part in _scan(catalog, words):
        problems.extend(part.problems)
        if isinstance(part, Use):
            uses.append(part)
            problems.extend(_judge(part, catalog))
    problems.extend(_missing(catalog, uses))
    problems.extend(hints.unregistered(catalog, {use.flag.name: use.values for use in uses}))
    return problems


def parts(catalog: Catalog, words: Sequence[str]) -> list[Use | Stray]:
    """A command line behind its program, cut up: flags with their values, and the words that are no flag's."""
    normal, _ = catalog.dialect.normalise(list(words))
    return [part for part in _scan(catalog, normal) if isinstance(part, Use) or part.words]


def refused(use: Use, catalog: Catalog) -> list[FlagProblem]:
    """What this release has against one flag and its values."""
    given = {use.flag.name: use.values}
    return [*use.problems, *_judge(use, catalog), *hints.unregistered(catalog, given)]


def coerce(catalog: Catalog, name: str, value: object) -> object:
    """The typed value of a flag written in a profile. FlagError says what to write instead."""
    flag = catalog.flag(name)
    if flag is None:
        text = hints.unknown(catalog, "--" + name.removeprefix("--").replace("_", "-"))
        raise FlagError(FlagProblem(name, text, "unknown"))
    problem = None
    if not flag.takes_value and not isinstance(value, bool | None):
        text = f"{flag.name} takes no value, found {value!r}; write true, or leave it out"
        problem = FlagProblem(flag.name, text, "extra-value")
    elif flag.takes_value and isinstance(value, bool):
        problem = FlagProblem(flag.name, f"{flag.name} needs a value, found {str(value).lower()}", "missing-value")
    elif isinstance(value, list) and not flag.many:
        problem = FlagProblem(flag.name, f"{flag.name} takes one value, found a list of {len(value)}", "extra-value")
    if problem:
        raise FlagError(problem)
    if value is None or not flag.takes_value:
        return value
    if isinstance(value, list):
        return [_typed(flag, as_word(item), catalog.dialect) for item in value]
    return _typed(flag, as_word(value), catalog.dialect)


def without_entry(catalog: Catalog, argv: Sequence[str]) -> list[str]:
    """The words behind the program, which may be several: `python3 -m MODULE`."""
    count = len(catalog.entry)
    head = [argv[0].rsplit("/", 1)[-1], *argv[1:count]] if argv else []
    return list(argv[count:] if head == list(catalog.entry) else argv)


def _scan(catalog: Catalog, words: list[str]) -> Iterator[Use | Stray]:
    """The command line cut into flags with their values; what is no flag's fills the positionals or is too much."""
    seats = sum(2**16 if name.endswith(("*", "+")) else 1 for name in catalog.positionals)
    last, at, literal = "", 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--" and not literal:
            literal = True
            continue
        if literal or not _is_option(catalog, word):
            seats -= 1
            yield Stray([word], [] if seats >= 0 else [_nobodys(word, last)], seats >= 0)
            continue
        use, notes = _resolve(catalog, word)
        until = at
        while until < len(words) and words[until] != "--" and not _is_option(catalog, words[until]):
            until += 1
        if use is None:
            yield Stray(words[at - 1 : until], notes)
            at, last = until, word
            continue
        last, use.problems = use.spelled, notes
        taken = 0 if use.attached else min(until - at, _most(use.flag))
        use.values.extend(words[at : at + taken])
        at += taken
        yield use
    needed = sum(not name.endswith(("?", "*")) for name in catalog.positionals)
    if seats > len(catalog.positionals) - needed:
        name = catalog.positionals[0]
        yield Stray([], [FlagProblem(name, f"{name} is required, as a word of its own", "required")])


def _nobodys(word: str, last: str) -> FlagProblem:
    hint = f"; does {last} take fewer values?" if last else ""
    return FlagProblem(word, f"'{word}' belongs to no flag{hint}", "extra-value")


def _is_option(catalog: Catalog, word: str) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    if word in catalog.spellings or word.split("=", 1)[0] in catalog.spellings:
        return True
    if word.startswith("--") and _prefixed(catalog, word.split("=", 1)[0]):
        return True
    return not _NEGATIVE.match(word) and " " not in word


def _resolve(catalog: Catalog, word: str) -> tuple[Use | None, list[FlagProblem]]:
    name, equals, value = word.partition("=")
    if word in catalog.spellings:
        name, equals, value = word, "", ""
    attached = [value] if equals else []
    if name in catalog.spellings:
        return Use(_known(catalog, name), name, attached, bool(equals)), []
    matches = _prefixed(catalog, name) if name.startswith("--") else []
    if len(matches) > 1:
        return None, [FlagProblem(name, f"{name} could be {', '.join(matches)}; write the full name", "ambiguous")]
    if not matches:
        return None, [FlagProblem(name, hints.unknown(catalog, name), "unknown")]
    text = f"{name} works only as an abbreviation of {matches[0]}; write the full name"
    return Use(_known(catalog, matches[0]), name, attached, bool(equals)), [FlagProblem(name, text, "abbreviated")]


def _known(catalog: Catalog, name: str) -> Flag:
    flag = catalog.flag(name)
    assert flag is not None  # the name comes from this catalog's own spellings
    return flag


def _prefixed(catalog: Catalog, name: str) -> list[str]:
    if not catalog.prefixes or len(name) < 3:
        return []
    return sorted(spelling for spelling in catalog.spellings if spelling.startswith(name))


def _most(flag: Flag) -> int:
    if not flag.takes_value:
        return 0
    if isinstance(flag.nargs, int):
        return flag.nargs
    return 2**16 if flag.nargs in ("+", "*") else 1


def _judge(use: Use, catalog: Catalog) -> Iterator[FlagProblem]:
    flag, name = use.flag, use.spelled
    if flag.action == "exit":
        yield FlagProblem(name, f"{name} prints its text and exits; it does not serve", "exit")
    release = f"{catalog.engine} {catalog.version}"
    instead = f"; write {flag.replacement}" if flag.replacement else ""
    if flag.action == "refused":
        yield FlagProblem(name, f"{name} is no longer supported by {release}{instead}", "removed")
    elif flag.deprecated:
        yield FlagProblem(name, f"{name} is deprecated in {release}{instead}", "deprecated")
    if not flag.takes_value:
        if use.attached:
            yield FlagProblem(name, f"{name} takes no value, found '{use.values[0]}'", "extra-value")
        return
    least = flag.nargs if isinstance(flag.nargs, int) else 0 if flag.nargs in ("?", "*") else 1
    if len(use.values) < least:
        yield FlagProblem(name, f"{name} needs a value", "missing-value")
    for value in use.values:
        try:
            flag.convert(value, catalog.dialect)
        except ValueError as expected:
            kind = "choice" if _is_choice(flag, value) else "type"
            yield FlagProblem(name, f"{name}: expected {expected}, found '{value}'", kind)


def _is_choice(flag: Flag, value: str) -> bool:
    """Whether a refused value is of the right type and only not among the choices."""
    return bool(flag.choices) and (flag.type in ("str", "folded") or value.isdigit())


def _missing(catalog: Catalog, uses: list[Use]) -> Iterator[FlagProblem]:
    state = {use.flag.name: use.spelled not in use.flag.off for use in uses}  # the last one on the line wins
    given = {name for name, on in state.items() if on}
    for flag in catalog.required:
        if flag.name not in given:
            yield FlagProblem(flag.name, f"{flag.name} is required", "required")
    for left, right in catalog.registries.get("needs", ()):
        if left in given and right not in given:
            yield FlagProblem(left, f"{left} requires {right}", "required")


def _typed(flag: Flag, text: str, dialect: Dialect) -> object:
    try:
        return flag.convert(text, dialect)
    except ValueError as expected:
        kind = "choice" if flag.choices else "type"
        raise FlagError(FlagProblem(flag.name, f"{flag.name}: expected {expected}, found '{text}'", kind)) from None


def as_word(value: object) -> str:
    """A value as one word of a command line."""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
