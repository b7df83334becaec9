"""What variables of a script are, and words with them replaced. What has no value stays as `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Self

from sparkloom.base import arithmetic
from sparkloom.base.errors import InputError
from sparkloom.inputs.importers.lexer import Lexer, Part, Word, lex

# Typed on each node; rank 0 has all that an engine is told. (Of a LORA_RANK nothing is known.)
_RANK = re.compile(r"((NODE|HOST|MACHINE|MY)_?)?RANK", re.IGNORECASE)
OPEN = re.compile(r"\$\{([^{}]*)\}")  # what is left of a variable without a value
_UNSAID = re.compile(r"[^\w ./:=@+-]+")  # of a command that is not run: what a shell within would take for its own
_PIECE = re.compile(r"(?:\$\{[^{}]*\}|\S)+")
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*]+)(?:\[([@*0-9]+)\])?(?:(:?[-=+?])(.*))?", re.DOTALL)
_SUM = re.compile(r"[\d\s()+*/%<>=!&|-]+")
DEPTH = 20
MOST = 100_000  # characters or words of one variable: `A="$A$A"` doubles, and no launch needs more
VARIABLES = 1_000  # of one script: each branch has its own copy of them


@dataclass(slots=True)
class Variables:
    """Values as the script sets them; None where it does and this reader cannot say to what."""

    values: dict[str, str | None] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # what the script writes with a here-document
    defaulted: set[str] = field(default_factory=set)  # names whose `:-default` was taken
    given: list[str] | None = None  # the words of the function that is called; None of the source's own

    def copy(self) -> Self:
        return replace(self, values=dict(self.values), lists=dict(self.lists), given=self.given and [*self.given])

    def forget(self, other: Variables, *, typed: bool = False) -> Iterator[str]:
        """After a branch that nobody decided: what it sets is not known any more. What it only adds is yielded.
        `typed`: it reads the script's own options, and who types none keeps what is set."""
        for name, value in other.values.items():
            old = self.values.get(name)
            if typed and old:
                continue
            if value and old is not None and value.startswith(f"{old} " if old else "-"):
                yield value.removeprefix(old).strip()
            elif old != value or name not in self.values:
                self.values[name] = None
        for name, items in other.lists.items():
            own = self.lists.get(name)
            if typed and own:
                continue
            if own is not None and items[: len(own)] == own:
                yield " ".join(items[len(own) :])
            else:
                self.lists.pop(name, None)
                self.values[name] = None

    def expand(self, words: Sequence[Word]) -> list[str]:
        return [text for word in words for text in self.fields(word)]

    def text(self, word: Word) -> str:
        """One word as one text: of an assignment, of a case."""
        return "".join(self._value(part) for part in word.parts)

    def fields(self, word: Word) -> list[str]:
        """A word as the shell would split it."""
        fields: list[str] = []
        current: str | None = None
        nothing = False  # "${LIST[@]}" of an empty list is no word, though it stands in quotes
        for part in word.parts:
            items = self._items(part)
            if items is not None:
                nothing = nothing or not items
                if items:
                    fields.append((current or "") + items[0])
                    fields += items[1:]
                    current = fields.pop()
                continue
            value = self._value(part)
            if part.kind == "text" or part.quoted:
                current = (current or "") + value if value or part.quoted or current is not None else current
                continue
            for index, piece in enumerate(_PIECE.findall(value)):
                if index:
                    fields.append(current or "")
                    current = piece
                else:
                    current = (current or "") + piece
        return fields if current is None or (nothing and not current) else [*fields, current]

    def _items(self, part: Part) -> list[str] | None:
        match = _NAMED.fullmatch(part.text) if part.kind == "variable" else None
        if match is None or (match[2] or match[1]) not in ("@", "*"):
            return None
        return self.given if match[2] is None else self.lists.get(match[1])

    def _value(self, part: Part, depth: int = 0) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "command":
            come = self.computed(part.text[1:-1]) if re.fullmatch(r"\(.*\)", part.text, re.DOTALL) else None
            return f"${{({_UNSAID.sub(' ', part.text).strip()})}}" if come is None else str(come)
        if part.kind in ("array", "sum"):
            return f"({part.text})"
        match = _NAMED.fullmatch(part.text)
        if match is None or depth > DEPTH:
            return f"${{{part.text}}}"
        return self._named(match, depth)

    def _named(self, match: re.Match[str], depth: int) -> str:
        name, at, sign, other = match.groups()
        value = self.values.get(name)
        if name in self.lists:
            items = self.lists[name]
            value = "".join(items[int(at) : int(at) + 1]) if (at or "").isdigit() else " ".join(items)
        if name.isdigit() and self.given is not None:
            value = dict(zip(map(str, count(1)), self.given, strict=False)).get(name, "")
        known = name in self.values or name in self.lists
        if sign in ("+", ":+"):
            return self.inner(other or "", depth) if value else ""
        if value is None or (not value and sign and sign.startswith(":")):
            if sign and sign[-1] in "-=" and not (known and value is None):
                self.defaulted.add(name)
                return self.inner(other or "", depth)
            return f"${{{_shown(match)}}}" if value is None else value
        return value

    def computed(self, text: str) -> int | None:
        """What `A * 4` comes to, or `A > 4` says, as 0 or 1; None where not all of it is known."""
        inside = re.sub(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?", lambda m: self.values.get(m[1]) or m[1], text)
        if not _SUM.fullmatch(inside) or len(inside) > 200:
            return None
        spelled = inside.replace("&&", " and ").replace("||", " or ")
        return total(re.sub(r"!(?!=)", " not ", spelled))

    def inner(self, text: str, depth: int = 0) -> str:
        """The text behind `:-`, which may have variables in it again."""
        lexer = Lexer(text)
        word = Word(1)
        while lexer.at < len(text):
            before = lexer.at
            lexer._part(word, text[lexer.at])
            if lexer.at == before:
                break
        return "".join(self._value(part, depth + 1) for part in word.parts)

    def assign(self, text: str, word: Word) -> bool:
        """`NAME=value`, `NAME+=value`, `NAME=(...)`. False where the word is no assignment."""
        match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=", text)
        if match is None:
            return False
        name, more = match[1], bool(match[2])
        if len(self.values) + len(self.lists) >= VARIABLES:
            message = f"sets more than {VARIABLES:,} variables; expected a script that starts an engine"
            raise InputError.single(f"line {word.line}", message, rule="unreadable")
        array = next((part for part in word.parts if part.kind == "array"), None)
        if array is not None:
            items = [t for w in Lexer(array.text).tokens() if isinstance(w, Word) for t in self.fields(w)]
            whole = [*self.lists.get(name, []), *items] if more else items
            if sum(map(len, whole)) + len(whole) > MOST:
                self.values[name] = None
                self.lists.pop(name, None)
                return True
            self.lists[name] = whole
            self.values.pop(name, None)
            return True
        value = self.text(_behind(word, match.end()))
        if _RANK.fullmatch(name) and OPEN.search(value):
            value = "0"
        old = self.values.get(name) or "" if more else ""
        if len(old) + len(value) > MOST:
            value, old = f"${{{name}}}", ""
        self.values[name] = None if OPEN.fullmatch(value) and OPEN.fullmatch(value)[1] == name else old + value  # type: ignore[index]
        self.lists.pop(name, None)
        return True


def split(text: str) -> list[str]:
    """A line's words as a shell without variables would have them."""
    return Variables().expand([token for token in lex(text) if isinstance(token, Word)])


def _behind(word: Word, count: int) -> Word:
    """The word without its first characters, which are plain ones."""
    parts = list(word.parts)
    while parts and count:
        cut = min(count, len(parts[0].text))
        count -= cut
        parts = [replace(parts[0], text=parts[0].text[cut:]), *parts[1:]] if cut < len(parts[0].text) else parts[1:]
    return Word(word.line, word.raw, parts)


def _shown(match: re.Match[str]) -> str:
    return match[1] + (f"[{match[2]}]" if match[2] else "")


def total(text: str) -> int | None:
    """Whole numbers as a shell's `((...))` adds and compares them; None where the text is no sum."""
    try:
        return arithmetic.value(arithmetic.parsed(text.strip()))
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
        return None
