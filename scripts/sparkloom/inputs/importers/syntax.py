"""The sentences of a shell script: commands, branches, loops, functions. Malformed ones are commands like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkloom.inputs.importers.lexer import Redirection, Sign, Token, Word

ENDS = {"then", "elif", "else", "fi", "do", "done", "esac", "}", ")", ";;"}


@dataclass(slots=True)
class Command:
    line: int
    words: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    joint: str = ";"  # how the one after it is joined: ;  &&  ||  |


@dataclass(slots=True)
class Branches:
    """`if` and `case`: each with what decides about it. Without a condition: else, or `*`."""

    line: int
    said: str
    arms: list[tuple[list[Sentence] | list[str] | None, list[Sentence]]]
    subject: Word | None = None  # of a case


@dataclass(slots=True)
class Block:
    """A loop, a function or a group."""

    line: int
    said: str
    body: list[Sentence]
    runs: bool  # whether it is gone through once and for sure
    name: str = ""  # of a function
    size: int = 0  # of one, in words and signs
    over: list[Word] = field(default_factory=list)  # of `for NAME in WORDS`: its words


Sentence = Command | Branches | Block


class Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.at = tokens, 0

    def script(self) -> list[Sentence]:
        sentences: list[Sentence] = []
        while self.at < len(self.tokens):
            sentences += self.block()
            self.at += 1  # past an end that nothing began
        return sentences

    def block(self) -> list[Sentence]:
        """Up to a word that ends something, which stays."""
        sentences: list[Sentence] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if self._text(token) in ENDS and self._begins():
                break
            if isinstance(token, Sign) and token.text in ("\n", ";", "&", "&&", "||", "|", "|&"):
                self.at += 1
                continue
            before = self.at
            sentences.append(self._sentence(token))
            self.at = max(self.at, before + 1)
        return sentences

    def _begins(self) -> bool:
        """Whether a word here would be the first of a command: `echo done` ends nothing."""
        if self.at == 0 or isinstance(self.tokens[self.at], Sign):
            return True
        before = self.tokens[self.at - 1]
        return isinstance(before, Sign) or self._text(before) in ENDS | {"{"}

    def _text(self, token: Token | None) -> str:
        if isinstance(token, Sign):
            return token.text
        return token.raw if isinstance(token, Word) else ""

    def _peek(self, ahead: int = 0) -> str:
        return self._text(self.tokens[self.at + ahead]) if self.at + ahead < len(self.tokens) else ""

    def _sentence(self, token: Token) -> Sentence:
        text, line = self._text(token), token.line
        if text == "if":
            return self._if(line)
        if text == "case":
            return self._case(line)
        if text in ("while", "until", "for", "select"):
            return self._loop(line)
        if text in ("{", "("):
            self.at += 1
            return Block(line, text, self._closed(self.block()), True)
        if text == "function" or (self._peek(1) == "(" and self._peek(2) == ")"):
            return self._function(line)
        return self._command(line)

    def _closed(self, body: list[Sentence]) -> list[Sentence]:
        self.at += 1
        return body

    def _function(self, line: int) -> Sentence:
        name, begun = self._peek(1) if self._peek() == "function" else self._peek(), self.at
        while self.at < len(self.tokens) and self._peek() not in ("{", "\n"):
            self.at += 1
        if self._peek() == "\n" and self._peek(1) == "{":
            self.at += 1
        self.at += 1
        body = self._closed(self.block())
        return Block(line, f"function {name}", body, False, name, self.at - begun)

    def _if(self, line: int) -> Branches:
        branches = Branches(line, "if", [])
        while self._peek() in ("if", "elif", "else"):
            asked = self._peek()
            self.at += 1
            condition = self.block() if asked != "else" else None
            if self._peek() == "then":
                self.at += 1
            branches.arms.append((condition, self.block()))
        self.at += 1  # fi
        branches.said = "if " + " ".join(words(branches.arms[0][0] or []))
        return branches

    def _case(self, line: int) -> Branches:
        subject = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        word = subject if isinstance(subject, Word) else None
        branches = Branches(line, f"case {word.raw if word else ''}", [], word)
        while self.at < len(self.tokens) and self._peek() != "in":
            self.at += 1
        self.at += 1
        while self.at < len(self.tokens) and self._peek() != "esac":
            patterns: list[str] = []
            while self.at < len(self.tokens) and self._peek() not in (")", "esac"):
                token = self.tokens[self.at]
                if isinstance(token, Word):
                    patterns.append(token.plain if token.plain is not None else token.raw)
                self.at += 1
            if self._peek() == ")":
                self.at += 1
                branches.arms.append((patterns, self.block()))
            if self._peek() == ";;":
                self.at += 1
        self.at += 1
        return branches

    def _loop(self, line: int) -> Block:
        begun = self.at
        while self.at < len(self.tokens) and self._peek() != "do":
            self.at += 1
        head = [token for token in self.tokens[begun : self.at] if self._text(token) not in ("\n", ";")]
        self.at += 1
        body = self._closed(self.block())
        over = [token for token in head if isinstance(token, Word)]
        return Block(line, " ".join(map(self._text, head)), body, False, over=over)

    def _command(self, line: int) -> Command:
        command = Command(line)
        brackets = self._peek() == "[["
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Sign) and not brackets:
                command.joint = token.text
                break
            if isinstance(token, Redirection):
                command.redirections.append(token)
            else:
                command.words.append(token if isinstance(token, Word) else Word(token.line, token.text))
            self.at += 1
            if brackets and self._text(token) in ("]]", "\n"):
                brackets = False
        return command


def words(sentences: Sequence[Sentence] | Sequence[str]) -> list[str]:
    """How a condition is written, for whoever is told of it."""
    return [word.raw for s in sentences if isinstance(s, Command) for word in s.words]


def parse(tokens: Sequence[Token]) -> list[Sentence]:
    return Parser(tokens).script()
