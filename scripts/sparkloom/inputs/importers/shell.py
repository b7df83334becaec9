"""Reads scripts and command lines: finds the engines that they start. Nothing of them is ever executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from sparkloom.inputs.importers import beside, syntax, vocabulary
from sparkloom.inputs.importers.expansion import OPEN, Variables, total
from sparkloom.inputs.importers.found import Found, Leftover, Programs, short
from sparkloom.inputs.importers.lexer import Word, lex
from sparkloom.inputs.importers.starts import DEPTH, SHELLS, Scope, Starts, plain

SETS = {"export", "local", "declare", "readonly", "typeset"}
QUIET = {"set", "shopt", ":", "true", "false", "exit", "return", "break", "continue", "shift", "unset", "wait", "sleep",
         "cd", "mkdir", "echo", "printf", "]", "[", "[[", "test"}  # fmt: skip
DEFAULT = "the file's own default is taken; whoever runs it may set another"
NOT_RUN = "a command of the author's shell: not executed, nothing of it is in the profile"
WRITTEN = "a file of the author's machine: read where an engine is told of it, or a shell"
UNDECIDED = "added on a condition that is not decided here: left out"
TYPED = "reads options that are typed behind the script: taken as run without any"
MOST_LISTS = 20
LISTED = "a list of words; how the script runs it is not followed"
CUT_OFF = "cut off from its command by a comment or an empty line: the author's shell told the engine none of it"
_MADE = re.compile(r"^(\w+)(?: *[:?]= *| += +)(['\"]?)(.*?)\2[ \t]*$", re.MULTILINE)  # in a Makefile, a Justfile
_SET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_OPTIONS = re.compile(r"(?:while|until|for) .*(?:\$\{?[#@*1]|\bgetopts\b)")  # a loop over them
TESTS = ("[", "[[", "test")
NUMBERS = {"-eq": "==", "-ne": "!=", "-gt": ">", "-lt": "<", "-ge": ">=", "-le": "<="}


class Reader(Starts):
    """One file's commands, gone through in order."""

    def __init__(self, programs: Programs, file: str) -> None:
        super().__init__(programs, file)
        self.functions: dict[str, syntax.Block] = {}  # those that are called are marked: they run
        self.lists: dict[tuple[str, ...], tuple[int, Scope]] = {}  # of words: the line of what holds them

    def script(self, text: str, v: Scope, line: int = 1) -> None:
        self._block(syntax.parse(lex(text, line)), v)
        for function in list(self.functions.values()) if v.depth == 0 else ():
            if not function.runs:
                self._undecided(function, function.body, v)
        self._keep(0, v)

    def listed(self, line: int) -> None:
        """`RUN=(docker run ...)`, quoted, printed or sent elsewhere: the longest list that starts an engine."""
        for words, (at, v) in sorted(self.lists.items(), key=lambda one: -len(one[0]))[:MOST_LISTS]:
            where = f"{self.file}:{at or line}"
            if self.words(list(words), where, v, {}):
                self.starts[-1].leftover.add(f"{where}: {short(' '.join(words))}", LISTED)
                return

    def _keep(self, line: int, v: Scope) -> None:
        for words in v.lists.values():
            self.lists.setdefault(tuple(words), (line, v))

    def _block(self, sentences: Sequence[syntax.Sentence], v: Scope) -> None:
        skip: bool | None = False  # after `false &&` or `true ||`; None: after a test that nobody decided
        for sentence in sentences:
            if isinstance(sentence, syntax.Command):
                skip = self._joined(sentence, v, skip)
            elif isinstance(sentence, syntax.Branches):
                self._branches(sentence, v)
            elif sentence.name:
                self.functions[sentence.name] = sentence
            elif sentence.runs:
                self._block(sentence.body, v)
            else:
                self._undecided(sentence, sentence.body, v, self._first(sentence.over, v))

    def _first(self, words: Sequence[Word], v: Scope) -> dict[str, str]:
        """`for NAME in WORDS`: what it goes through first with."""
        said = v.expand(words)
        known = (
            said[::2][:2] == ["for", "in"] and said[3:] and not OPEN.search(said[3]) and not set("*?[{") & {*said[3]}
        )
        return {said[1]: said[3]} if known else {}

    def _joined(self, command: syntax.Command, v: Scope, skip: bool | None) -> bool | None:
        """Goes through a command, and says whether the one joined to it is passed over."""
        joined = command.joint in ("&&", "||")
        if skip:
            return joined
        if skip is None:
            self._undecided(syntax.Block(command.line, " ".join(syntax.words([command])), [], False), [command], v)
            return None if joined else False
        verdict = self._command(command, v)
        return None if joined and verdict is None else joined and verdict is (command.joint == "||")

    def _branches(self, branches: syntax.Branches, v: Scope) -> None:
        for condition, body in branches.arms:
            said = self._holds(branches, condition, v)
            if said is True:
                self._block(body, v)
                return
            if said is None:
                break
        else:
            return
        for _, body in branches.arms:
            self._undecided(branches, body, v)

    def _holds(self, branches: syntax.Branches, condition: object, v: Scope) -> bool | None:
        if condition is None:
            return True
        if branches.subject is not None:
            subject = v.text(branches.subject)
            if OPEN.search(subject):
                return None
            return any(fnmatchcase(subject, pattern.strip("\"'")) for pattern in condition if isinstance(pattern, str))  # type: ignore[attr-defined]
        said: bool | None = None
        for test in (s for s in condition if isinstance(s, syntax.Command)):  # type: ignore[attr-defined]
            texts = v.expand(test.words)
            said = self._verdict(test.words, texts, v)
            if said is None and not {*TESTS} & {*texts[:2]}:
                self._asked(texts, f"{self.file}:{test.line}", v)
            if said is None or (said and test.joint == "||") or (not said and test.joint == "&&"):
                return said
        return said

    def _asked(self, texts: list[str], where: str, v: Scope) -> None:
        """`if ! COMMAND; then`: it runs, whatever becomes of it."""
        if self._called([text for text in texts if text != "!"], v, {}):
            return
        if not self.words(texts, where, v, {}) and "download" in texts:
            self.leftover.add(f"{where}: {short(' '.join(texts))}", NOT_RUN)

    def _undecided(
        self,
        about: syntax.Block | syntax.Branches,
        body: Sequence[syntax.Sentence],
        v: Scope,
        told: Mapping[str, str] | None = None,
    ) -> None:
        """What runs or not, as the author's machine has it: engines in there are found, values are not believed."""
        apart, before = v.copy(), len(self.starts)
        apart.values |= told or {}
        self._block(body, apart)
        self._keep(about.line, apart)
        for start in self.starts[before:]:
            what = f"{self.file}:{about.line}: {short(about.said)}"
            once = "".join(f", read as with {value}, the first of these words" for value in (told or {}).values())
            start.leftover.add(what, f"the start stands in there{once or '; when, is not known here'}")
        if typed := not v.given and bool(_OPTIONS.match(about.said)):
            self.leftover.add(f"{self.file}:{about.line}: {short(about.said)}", TYPED)
        for added in filter(None, v.forget(apart, typed=typed)):
            self.leftover.add(f"{self.file}:{about.line}: {short(added)}", UNDECIDED)

    def _command(self, command: syntax.Command, v: Scope) -> bool | None:
        words = list(command.words)
        own: dict[str, str] = {}
        lasting = all(_SET.match(word.raw) for word in words)  # (else they are one command's)
        while words and _SET.match(words[0].raw):
            apart = v if lasting else v.copy()
            apart.assign(words[0].raw, words[0])
            name = re.split(r"\+?=", words[0].raw, maxsplit=1)[0]
            own[name] = apart.values.get(name) or f"${{{name}}}"
            words.pop(0)
        texts = v.expand(words)
        if not texts or self._documents(command, texts, v):
            return True
        if texts[0] in SETS:
            self._sets(texts[0], words[1:], v)
            return True
        if texts[0] in ("read", "mapfile", "readarray"):
            self._told(command, texts, v)
            return True
        verdict = self._verdict(words, texts, v)
        if verdict is not None or (words[0].parts[:1] and words[0].parts[0].kind == "sum"):
            return verdict
        self._runs(command, texts, v, own)
        return None if texts[0] in TESTS else True

    def _verdict(self, words: Sequence[Word], texts: list[str], v: Variables) -> bool | None:
        if words and words[0].parts and words[0].parts[0].kind == "sum":
            said = v.computed(words[0].parts[0].text)
            return None if said is None else bool(said)
        return _decided(texts, lambda name: bool(beside.variables(self.file, name)))

    def _sets(self, how: str, words: Sequence[Word], v: Scope) -> None:
        """`export NAME=value` and its like."""
        for word in words:
            name, equals, told = v.text(word).partition("=")
            name = name.removesuffix("+")
            if not v.assign(word.raw, word) and equals and name.isidentifier():  # "NAME=value", quoted as one
                v.values[name] = told
            if equals and how == "export" and (value := v.values.get(name)) is not None:
                self.exported[name] = value

    def _runs(self, command: syntax.Command, texts: list[str], v: Scope, own: dict[str, str]) -> None:
        """A command that is neither a test nor an assignment; where it starts no engine, it is named."""
        where, first = f"{self.file}:{command.line}", texts[0]
        if self._called(texts, v, own):
            return
        if first == "shift" and v.given:
            del v.given[: 2 if texts[1:] == ["2"] else 1]
        elif first in (".", "source") and (found := beside.variables(self.file, texts[-1])):
            v.values |= dict.fromkeys(found) | beside.shown(found)
            self.leftover.add(f"{where}: {short(' '.join(texts))}", "its values are taken, from beside the script")
        elif not self.words(texts, where, v, own) and not self._fed(command, texts, v) and first not in QUIET:
            why = CUT_OFF if first.startswith("-") else vocabulary.SHELL.get(first, NOT_RUN)
            if not texts[-1].endswith("activate"):
                self.leftover.add(f"{where}: {short(' '.join(texts))}", why)

    def _called(self, texts: list[str], v: Scope, own: dict[str, str]) -> bool:
        """Whether it is a function of the script, which is gone through with what it is given."""
        function = self.functions.get(texts[0]) if texts else None
        if function is None or v.depth >= DEPTH or not self.affords(1_000 + 10 * function.size):
            return False
        function.runs, self.exported = True, self.exported | own
        given = None if texts[1:] == ["${@}"] else texts[1:]  # (None: what whoever runs the source gives)
        self._block(function.body, replace(v, given=given, depth=v.depth + 1))
        return True

    def _fed(self, command: syntax.Command, texts: list[str], v: Scope) -> bool:
        """`ssh HOST <<EOF`, `bash -s <<EOF`: whether what a shell is told by a here-document starts an engine."""
        told = next((r for r in command.redirections if r.body), None)
        shell = any(text.split(" ")[0].rsplit("/", 1)[-1] in ("ssh", *SHELLS) for text in texts)
        return bool(shell and told and told.body and self.nested(told.body, f":{told.line + 1}", v, {}))

    def _told(self, command: syntax.Command, texts: list[str], v: Scope) -> None:
        """`read -ra NAME <<< TEXT`; what `read` is told otherwise is not known."""
        told = next((v.text(r.target) for r in command.redirections if r.sign == "<<<" and r.target), None)
        many = any(re.fullmatch(r"-\w*a\w*", text) for text in texts[1:])
        for name in (text for text in texts[1:] if re.fullmatch(r"[A-Za-z_]\w*", text)):
            v.lists.pop(name, None)
            v.values[name] = None
            if told is not None and many and not OPEN.search(told):
                v.lists[name] = told.split()
                v.values.pop(name)

    def _documents(self, command: syntax.Command, texts: list[str], v: Scope) -> bool:
        """`cat > FILE <<EOF`, `tee FILE <<EOF`: a file that an engine may be told to read, or a shell to run."""
        told = next((r for r in command.redirections if r.body is not None), None)
        names = [v.text(r.target) for r in command.redirections if r.sign in (">", ">|", ">>") and r.target]
        name = (texts if "tee" in texts else names or [""])[-1]
        if told is None or told.body is None:
            return False
        known = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda m: v.values.get(m[1] or m[2]) or m[0], told.body)
        v.files[plain(name) or f"line {told.line}"] = told.body if told.literal else known
        if written := bool(name) and (texts[0] == "cat" or "tee" in texts):
            self.leftover.add(f"{self.file}:{command.line}: writes {short(name)}", WRITTEN)
        return written


def read(text: str, file: str, programs: Programs, line: int = 1, scope: Scope | None = None) -> Found | None:
    """A script or command line; None where it starts no engine. `line`: where in the file the text begins."""
    reader, variables = Reader(programs, file), scope or Scope()
    reader.script(_commands(text), variables, line)
    if not reader.starts:
        reader.listed(line)
    if not reader.starts:
        return None
    form = "command line" if len(reader.starts) == 1 and not reader.leftover else "script"
    summary = next(_comments(text), "")
    found = Found(form, file, reader.starts, summary=summary, leftover=reader.leftover)
    found.leftover += [Leftover(f"${{{name}}}", DEFAULT) for name in sorted(variables.defaulted)]
    return found


def _commands(text: str) -> str:
    """Of a systemd unit or a Makefile what a shell would be told: variables and commands, each line where it was."""
    if not re.match(r"(?:\s|[#;].*\n)*\[(Unit|Service)\]\s", text):
        return text if "<<" in text or text.startswith("#!") or not _MADE.search(text) else _of_make(text)
    text = re.sub(r"^(\[\w+\]|(Description|Documentation|After|Wants|WantedBy)=.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^EnvironmentFile=-?", "source ", text, flags=re.MULTILINE)
    text = re.sub(r"^Environment=", "export ", text, flags=re.MULTILINE)
    text = re.sub(r"^Exec\w+=[-@:+!|]*", "", text, flags=re.MULTILINE)
    return re.sub(r"^[A-Z]\w+=.*$", lambda key: f"systemd {shlex.quote(key[0])}", text, flags=re.MULTILINE)


def _of_make(text: str) -> str:
    """Its variables as a shell's, which a Justfile writes in doubled braces."""
    names = {match[1] for match in _MADE.finditer(text) if "(" not in match[3]}  # (a function's value is not known)
    text = _MADE.sub(lambda made: f"{made[1]}={shlex.quote(made[3])}", text.replace("$$", "$"))
    used = re.compile(r"\$\((\w+)\)|\{\{ *(\w+) *\}\}")
    text = used.sub(lambda use: f"${{{use[1] or use[2]}}}" if (use[1] or use[2]) in names else use[0], text)
    return re.sub(r"(?<!\\\n)^([ \t]+)[@-]+(?=\w)", r"\1", text, flags=re.MULTILINE)


def _decided(words: list[str], there: Callable[[str], bool]) -> bool | None:
    """What a test says, where both of its sides are known; None where it asks the machine for what is not `there`."""
    if not words or words[0] not in TESTS:
        return {"true": True, "false": False}.get(words[0]) if len(words) == 1 else None
    inside = [word for word in words[1:] if word not in ("]", "]]")]
    if any(OPEN.search(word) for word in inside):
        return None
    if inside[:1] == ["!"]:
        said = _decided(["[", *inside[1:]], there)
        return None if said is None else not said
    if len(inside) == 2 and inside[0] in ("-f", "-e"):
        return there(inside[1]) or None
    if len(inside) == 2 and inside[0] in ("-z", "-n"):
        return (inside[1] == "") == (inside[0] == "-z")
    if len(inside) == 1 and inside[0] in ("-z", "-n"):
        return inside[0] == "-z"
    if len(inside) == 3 and inside[1] in ("=", "==", "!="):
        return fnmatchcase(inside[0], inside[2]) == (inside[1] != "!=")
    if len(inside) == 3 and inside[1] in NUMBERS and all(re.fullmatch(r"\d{1,18}", one) for one in inside[::2]):
        return bool(total(f"{int(inside[0])} {NUMBERS[inside[1]]} {int(inside[2])}"))
    return None


def _comments(text: str) -> Iterator[str]:
    for line in text.splitlines():
        said = line.strip().lstrip("#").strip()
        if line.startswith("#") and not line.startswith("#!") and said:
            yield short(said)
        elif line.strip() and not line.startswith("#"):
            return
