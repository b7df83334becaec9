"""Reads scripts and command lines: finds the engines that they start. Nothing of them is ever executed."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from sparkloom.inputs.importers import syntax
from sparkloom.inputs.importers.containers import Container
from sparkloom.inputs.importers.expansion import OPEN, Variables
from sparkloom.inputs.importers.found import Found, Leftover, Leftovers, Programs, short
from sparkloom.inputs.importers.lexer import Word, lex
from sparkloom.inputs.importers.starts import Starts

SETS = {"export", "local", "declare", "readonly", "typeset"}
QUIET = {"set", "shopt", ":", "true", "false", "exit", "return", "break", "continue", "shift", "unset", "wait", "sleep",
         "source", ".", "cd", "mkdir", "echo", "printf", "]", "[", "[[", "test"}  # fmt: skip
DEFAULT = "the file's own default is taken; whoever runs it may set another"
NOT_RUN = "a command of the author's shell: not executed, nothing of it is in the profile"
NUMBERS = {
    "-eq": operator.eq, "-ne": operator.ne, "-gt": operator.gt, "-lt": operator.lt, "-ge": operator.ge,
    "-le": operator.le,
}  # fmt: skip


class Reader(Starts):
    """One file's commands, gone through in order."""

    def script(
        self, text: str, variables: Variables, *, line: int = 1, inside: Container | None = None, depth: int = 0
    ) -> None:
        self._block(syntax.parse(lex(text, line)), variables, inside, depth)

    def _block(self, sentences: Sequence[syntax.Sentence], v: Variables, inside: Container | None, depth: int) -> None:
        skip = False  # after `false &&` or `true ||`
        for sentence in sentences:
            if isinstance(sentence, syntax.Command):
                skip = self._joined(sentence, v, inside, depth, skip)
            elif isinstance(sentence, syntax.Branches):
                self._branches(sentence, v, inside, depth)
            elif sentence.runs:
                self._block(sentence.body, v, inside, depth)
            else:
                self._undecided(sentence.said, sentence.line, sentence.body, v, inside, depth)

    def _joined(self, command: syntax.Command, v: Variables, inside: Container | None, depth: int, skip: bool) -> bool:
        """Goes through a command, and says whether the one joined to it is passed over."""
        if skip:
            return command.joint in ("&&", "||")
        verdict = self._command(command, v, inside, depth)
        if command.joint == "&&":
            return verdict is False
        return command.joint == "||" and verdict is not False

    def _branches(self, branches: syntax.Branches, v: Variables, inside: Container | None, depth: int) -> None:
        for condition, body in branches.arms:
            said = self._holds(branches, condition, v)
            if said is True:
                self._block(body, v, inside, depth)
                return
            if said is None:
                break
        else:
            return
        for _, body in branches.arms:
            self._undecided(branches.said, branches.line, body, v, inside, depth)

    def _holds(self, branches: syntax.Branches, condition: object, v: Variables) -> bool | None:
        if condition is None:
            return True
        if branches.subject is not None:
            subject = v.text(branches.subject)
            if OPEN.search(subject):
                return None
            return any(fnmatchcase(subject, pattern.strip("\"'")) for pattern in condition if isinstance(pattern, str))  # type: ignore[attr-defined]
        tests = [s for s in condition if isinstance(s, syntax.Command)]  # type: ignore[attr-defined]
        said: bool | None = None
        for test in tests:
            one = _verdict(test.words, v.expand(test.words), v)
            said = one
            if one is None or (one and test.joint == "||") or (not one and test.joint == "&&"):
                return one
        return said

    def _undecided(
        self, said: str, line: int, body: Sequence[syntax.Sentence], v: Variables, inside: Container | None, depth: int
    ) -> None:
        """What runs or not, as the author's machine has it: engines in there are found, values are not believed."""
        apart, before = v.copy(), len(self.starts)
        quiet = self.leftover
        self.leftover = Leftovers()
        self._block(body, apart, inside, depth)
        mine, self.leftover = self.leftover, quiet
        for start in self.starts[before:]:
            start.leftover.add(
                f"{self.file}:{line}: {short(said)}", "the start stands in there; when, is not known here"
            )
        self.leftover += mine
        v.forget(apart)

    def _command(self, command: syntax.Command, v: Variables, inside: Container | None, depth: int) -> bool | None:
        words = list(command.words)
        own: dict[str, str] = {}
        while words and re.match(r"[A-Za-z_][A-Za-z0-9_]*\+?=", words[0].raw):
            apart = v.copy() if len(words) > 1 else v
            apart.assign(words[0].raw, words[0])
            name = re.split(r"\+?=", words[0].raw, maxsplit=1)[0]
            own[name] = apart.values.get(name) or f"${{{name}}}"
            words.pop(0)
        self._documents(command, v)
        if not words:
            return True
        texts = v.expand(words)
        if texts and texts[0] in SETS:
            for word in words[1:]:
                name, equals, told = v.text(word).partition("=")
                name = name.removesuffix("+")
                if not v.assign(word.raw, word) and equals and name.isidentifier():  # "NAME=value", quoted as one
                    v.values[name] = told
                if equals and texts[0] == "export" and (value := v.values.get(name)) is not None:
                    self.exported[name] = value
            return True
        if texts and texts[0] in ("read", "mapfile", "readarray"):
            self._told(command, texts, v)
            return True
        verdict = _verdict(words, texts, v)
        if verdict is not None or (words[0].parts[:1] and words[0].parts[0].kind == "sum"):
            return verdict
        where = f"{self.file}:{command.line}"
        if not self.words(texts, where, v, own, inside, depth) and texts and texts[0] not in QUIET:
            self.leftover.add(f"{where}: {short(' '.join(texts))}", NOT_RUN)
        return None if texts and texts[0] in ("[", "[[", "test") else True

    def _told(self, command: syntax.Command, texts: list[str], v: Variables) -> None:
        """`read -ra NAME <<< TEXT`; what `read` is told otherwise is not known."""
        told = next((v.text(r.target) for r in command.redirections if r.sign == "<<<" and r.target), None)
        many = any(re.fullmatch(r"-\w*a\w*", text) for text in texts[1:])
        for name in (text for text in texts[1:] if re.fullmatch(r"[A-Za-z_]\w*", text)):
            v.lists.pop(name, None)
            v.values[name] = None
            if told is not None and many and not OPEN.search(told):
                v.lists[name] = told.split()
                v.values.pop(name)

    def _documents(self, command: syntax.Command, v: Variables) -> None:
        """`cat > FILE <<EOF`: a file that an engine may be told to read."""
        body = next((r.body for r in command.redirections if r.body is not None), None)
        target = next((r.target for r in command.redirections if r.sign in (">", ">|", ">>") and r.target), None)
        if body is not None and target is not None:
            v.files[v.text(target)] = body


def read(text: str, file: str, programs: Programs, line: int = 1) -> Found | None:
    """A script or command line; None where it starts no engine. `line`: where in the file the text begins."""
    reader = Reader(programs, file)
    variables = Variables()
    reader.script(_commands(text.replace("\r\n", "\n")), variables, line=line)
    if not reader.starts:
        return None
    form = "command line" if len(reader.starts) == 1 and not reader.leftover else "script"
    summary = next(_comments(text), "")
    found = Found(form, file, reader.starts, summary=summary, leftover=reader.leftover)
    found.leftover += [Leftover(f"${{{name}}}", DEFAULT) for name in sorted(variables.defaulted)]
    return found


def _commands(text: str) -> str:
    """Of a systemd unit what a shell would be told: its variables and its commands, each line where it was."""
    if not re.search(r"^\[Service\]\s*$", text, re.MULTILINE):
        return text
    text = re.sub(r"^(\[\w+\]|(?!Exec|Environment=)\w+=.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^Environment=", "export ", text, flags=re.MULTILINE)
    return re.sub(r"^Exec\w+=[-@:+!|]*", "", text, flags=re.MULTILINE)


def _verdict(words: Sequence[Word], texts: list[str], v: Variables) -> bool | None:
    if words and words[0].parts and words[0].parts[0].kind == "sum":
        said = v.computed(words[0].parts[0].text)
        return None if said is None else bool(said)
    return _decided(texts)


def _decided(words: list[str]) -> bool | None:
    """What a test says, where both of its sides are known; None where it asks the machine."""
    if not words or words[0] not in ("[", "[[", "test"):
        return {"true": True, "false": False}.get(words[0]) if len(words) == 1 else None
    inside = [word for word in words[1:] if word not in ("]", "]]")]
    if any(OPEN.search(word) for word in inside):
        return None
    if inside[:1] == ["!"]:
        said = _decided(["[", *inside[1:]])
        return None if said is None else not said
    if len(inside) == 2 and inside[0] in ("-z", "-n"):
        return (inside[1] == "") == (inside[0] == "-z")
    if len(inside) == 1 and inside[0] in ("-z", "-n"):
        return inside[0] == "-z"
    if len(inside) == 3 and inside[1] in ("=", "==", "!="):
        return fnmatchcase(inside[0], inside[2]) == (inside[1] != "!=")
    if len(inside) == 3 and inside[1] in NUMBERS and all(re.fullmatch(r"\d{1,18}", one) for one in inside[::2]):
        return bool(NUMBERS[inside[1]](int(inside[0]), int(inside[2])))
    return None


def _comments(text: str) -> Iterator[str]:
    for line in text.splitlines():
        said = line.strip().lstrip("#").strip()
        if line.startswith("#") and not line.startswith("#!") and said:
            yield short(said)
        elif line.strip() and not line.startswith("#"):
            return
