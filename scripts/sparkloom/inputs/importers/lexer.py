"""Shell text cut into words and signs, as a shell would read it: quotes, continuations, comments, here-documents.

A word stays a list of parts until somebody asks for its value, since only then is known which variables have one.
Nothing is executed, and what this reader does not know it leaves in the word, for the caller to name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

SIGNS = ("&&", "||", ";;", "|&", ";", "&", "|", "(", ")")
REDIRECT = re.compile(r"(\d*|&)(<<<|>>|>&|>\||<>|<&|>|<)")
HERE = re.compile(r"\d*<<(-?)\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Part:
    """Literal text, or what stands behind a `$`; `quoted` says whether the shell would split it."""

    text: str
    kind: str = "text"  # text, variable, command, array, sum
    quoted: bool = False


@dataclass(slots=True)
class Word:
    line: int
    raw: str = ""
    parts: list[Part] = field(default_factory=list)

    @property
    def plain(self) -> str | None:
        """Its text, where nothing in it is to be replaced."""
        return "".join(part.text for part in self.parts) if all(p.kind == "text" for p in self.parts) else None


@dataclass(slots=True)
class Sign:
    line: int
    text: str


@dataclass(slots=True)
class Redirection:
    line: int
    sign: str
    target: Word | None
    body: str | None = None  # of a here-document
    literal: bool = False  # whether its variables stay as they are


Token = Word | Sign | Redirection


class Lexer:
    def __init__(self, text: str, line: int = 1) -> None:
        self.text, self.at, self.line = text, 0, line
        self.waiting: list[tuple[Redirection, str, bool]] = []  # here-documents whose text begins on the next line

    def tokens(self) -> Iterator[Token]:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r":
                self.at += 1
            elif self.text.startswith("\\\n", self.at) or re.match(r"\\[ \t]+\n", self.text[self.at : self.at + 80]):
                self._past(self.text.index("\n", self.at) + 1)  # a blank behind the backslash: meant as continuation
            elif character == "\n":
                yield Sign(self.line, "\n")
                self._past(self.at + 1)
                self._bodies()
            elif character == "#":
                self._past(self._next("\n", self.at))
            elif self.text.startswith("((", self.at):
                yield self._sum()
            elif here := HERE.match(self.text, self.at):
                yield self._here(here)
            elif (redirect := REDIRECT.match(self.text, self.at)) and not self.text.startswith("<(", self.at):
                yield self._redirection(redirect)
            elif sign := next((sign for sign in SIGNS if self.text.startswith(sign, self.at)), ""):
                yield Sign(self.line, sign)
                self._past(self.at + len(sign))
            else:
                yield self._word()

    def _past(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def _next(self, sign: str, start: int) -> int:
        """Where it stands next; the end of the text where it does not."""
        found = self.text.find(sign, start)
        return len(self.text) if found < 0 else found

    def _sum(self) -> Word:
        """`((A > 4))` as a command."""
        start, line = self.at, self.line
        inside = self._closing("(", ")")
        return Word(line, self.text[start : self.at], [Part(inside.removeprefix("(").removesuffix(")"), "sum")])

    def _here(self, match: re.Match[str]) -> Redirection:
        redirection = Redirection(self.line, "<<", None, literal=bool(match[2]))
        self.waiting.append((redirection, match[3], match[1] == "-"))
        self._past(match.end())
        return redirection

    def _bodies(self) -> None:
        """The texts of the here-documents that the line before announced."""
        for redirection, end, strip in self.waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                stop = self._next("\n", self.at)
                line = self.text[self.at : stop]
                self._past(min(stop + 1, len(self.text)))
                if (line.lstrip("\t") if strip else line).rstrip("\r") == end:
                    break
                lines.append(line.lstrip("\t") if strip else line)
            redirection.body = "\n".join(lines) + "\n"
        self.waiting = []

    def _redirection(self, match: re.Match[str]) -> Redirection:
        line = self.line
        self._past(match.end())
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        target = self._word() if self.at < len(self.text) and self.text[self.at] not in "\n;&|" else None
        return Redirection(line, match[2], target)

    def _word(self) -> Word:
        start, word = self.at, Word(self.line)
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\n\r;&|()<>" and not self._array(word):
                break
            self._part(word, character)
        if self.at == start:  # a sign that no rule above takes: itself
            word.parts.append(Part(self.text[self.at]))
            self._past(self.at + 1)
        word.raw = self.text[start : self.at]
        return word

    def _array(self, word: Word) -> bool:
        """`NAME=(` and `NAME+=(`: one word up to the bracket that closes it."""
        text = word.plain
        return self.text[self.at] == "(" and text is not None and re.fullmatch(NAME.pattern + r"\+?=", text) is not None

    def _part(self, word: Word, character: str) -> None:
        if character == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            if following != "\n":
                word.parts.append(Part(following, quoted=True))
            self._past(min(self.at + 2, len(self.text)))
        elif character == "'":
            word.parts.append(Part(self._until("'"), quoted=True))
        elif character == '"':
            self._quoted(word)
        elif character == "$":
            word.parts.append(self._dollar(False))
        elif character == "`":
            word.parts.append(Part(self._until("`"), "command"))
        elif character == "(":
            word.parts.append(Part(self._closing("(", ")"), "array"))
        else:
            end = self.at + 1
            while end < len(self.text) and self.text[end] not in " \t\n\r;&|()<>\\'\"$`":
                end += 1
            word.parts.append(Part(self.text[self.at : end]))
            self._past(end)

    def _quoted(self, word: Word) -> None:
        self._past(self.at + 1)
        gathered = ""
        word.parts.append(Part("", quoted=True))  # an empty "" is a word, too
        while self.at < len(self.text) and self.text[self.at] != '"':
            character = self.text[self.at]
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                following = self.text[self.at + 1]
                gathered += "" if following == "\n" else following
                self._past(self.at + 2)
            elif character in "$`":
                word.parts.append(Part(gathered, quoted=True))
                gathered = ""
                word.parts.append(self._dollar(True) if character == "$" else Part(self._until("`"), "command", True))
            else:
                gathered += character
                self._past(self.at + 1)
        word.parts.append(Part(gathered, quoted=True))
        self._past(min(self.at + 1, len(self.text)))

    def _dollar(self, quoted: bool) -> Part:
        self._past(self.at + 1)
        if self.text.startswith("{", self.at):
            return Part(self._closing("{", "}", '"' if quoted else "'\""), "variable", quoted)
        if self.text.startswith("(", self.at):
            return Part(self._closing("(", ")"), "command", quoted)
        if match := re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]").match(self.text, self.at):
            self._past(match.end())
            return Part(match[0], "variable", quoted)
        return Part("$", quoted=quoted)

    def _until(self, end: str) -> str:
        stop = self._next(end, self.at + 1)
        inside = self.text[self.at + 1 : stop]
        self._past(min(stop + 1, len(self.text)))
        return inside

    def _closing(self, opening: str, closing: str, quotes: str = "'\"") -> str:
        """What stands between a bracket and the one that closes it; in double quotes a single one is a letter."""
        depth, at, quote = 0, self.at, ""
        while at < len(self.text):
            character = self.text[at]
            if character == "\\":
                at += 2
                continue
            if quote:
                quote = "" if character == quote else quote
            elif character in quotes:
                quote = character
            elif character == opening:
                depth += 1
            elif character == closing:
                depth -= 1
                if not depth:
                    break
            at += 1
        inside = self.text[self.at + 1 : at]
        self._past(min(at + 1, len(self.text)))
        return inside


def lex(text: str, line: int = 1) -> list[Token]:
    return list(Lexer(text, line).tokens())
