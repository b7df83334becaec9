"""Words that start an engine, at once or through `docker run`, `bash -c`, `ssh`: which, how, in which container."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkloom.inputs.importers import containers, vocabulary
from sparkloom.inputs.importers.containers import Container
from sparkloom.inputs.importers.expansion import Variables
from sparkloom.inputs.importers.found import Leftovers, Programs, Started, short

TALK = {"echo", "printf", "grep", "pgrep", "pkill", "pip", "pip3", "which", "cat", "sed", "awk", "ps", "trap", "type",
        "curl", "wget", "git", "apt-get", "apt"}  # fmt: skip
AHEAD = {"exec", "env", "nohup", "sudo", "-E", "command", "time", "setsid", "nice", "!"}
SHELLS = ("bash", "sh", "zsh")
_FLAGS = re.compile(r"-|(?:[\w.-]+/[\w.-]+(?<!\.sh)(?<!\.py) |/[\w./-]+(?<!\.sh)(?<!\.py) --)")  # a model before them
DEPTH = 6
AGAIN = 1 << 19  # characters of a file's own scripts and functions that are read where they are called


@dataclass(slots=True)
class Scope(Variables):
    """Where commands stand: their variables, in which container, how deep in others' words."""

    inside: Container | None = None
    depth: int = 0


class Starts(ABC):
    """The starts of one file, and what else was found on the way to them."""

    def __init__(self, programs: Programs, file: str) -> None:
        self.programs = [(engine, tuple(way)) for engine, ways in programs.items() for way in ways]
        ways = [r"\s+".join(map(re.escape, way)) for _, way in self.programs]
        box = rf"\b({'|'.join(containers.PROGRAMS)})\s+(container\s+)?(run|exec)\s"
        self.mentioned = re.compile("|".join([*ways, box]))
        self.again = AGAIN
        self.file = file
        self.starts: list[Started] = []
        self.leftover = Leftovers()
        self.containers: dict[str, Container] = {}
        self.entered: Container | None = None  # by a shell at its prompt: what is typed next is typed in there
        self.exported: dict[str, str] = {}

    @abstractmethod
    def script(self, text: str, v: Scope, line: int = 1) -> None:
        """Reads commands inside of a command's words."""

    def words(self, texts: list[str], where: str, v: Scope, own: dict[str, str]) -> bool:
        """Whether these words start an engine, or lead to words that do."""
        if not texts or v.depth > DEPTH:
            return False
        while len(texts) > 1 and (texts[0] in AHEAD or re.match(r"[A-Za-z_]\w*=", texts[0])):
            name, equals, value = texts[0].partition("=")
            own, texts = ({**own, name: value} if equals else own), texts[1:]
        if texts[0] == "eval":
            texts = ["eval", " ".join(texts[1:])]
        if texts[0] in TALK:
            return False
        if (found_box := containers.begins(texts)) is not None:
            first, verb = found_box
            self._before(texts[:first], {}, where)
            return self._container(texts[verb:], where, v, own)
        if not v.inside and (cluster := containers.clustered(texts)) is not None:
            self.containers.setdefault("cluster", cluster)
            v = replace(v, inside=cluster)
        if found := self._engine(texts):
            engine, at, length = found
            self._start(engine, texts[at + length :], where, v, self._before(texts[:at], own, where))
            return True
        several = (text for text in [self._written(texts, v), *texts[1:]] if re.search(r"\s", text))
        mentioned = filter(self.mentioned.search, several)
        return any(self.nested(text, where, v, own) for text in mentioned)

    def nested(self, text: str, where: str, v: Scope, own: dict[str, str]) -> bool:
        """Whether commands that stand in a word, or in a file that the source writes, start an engine."""
        before, exported = len(self.starts), self.exported
        within, self.exported = replace(v.copy(), depth=v.depth + 1), exported | own
        within.values |= v.inside.env if v.inside else own
        if self.affords(len(text)):
            self.script(text, within, int(where.rpartition(":")[2]))
        self.exported = exported
        return len(self.starts) > before

    def affords(self, size: int) -> bool:
        """Whether so much may still be read again: a script that calls itself would be read without end."""
        self.again -= size
        return self.again >= 0

    def _written(self, texts: Sequence[str], v: Scope) -> str:
        """The text of a script that these words run, where the source writes it."""
        shell = texts[0].rsplit("/", 1)[-1] in (*SHELLS, "source", ".")
        script = next((text for text in texts[shell:] if not text.startswith("-")), "")
        text = {**v.files, **(_mounted(v.inside, v) if v.inside else {})}.get(plain(script), "")
        return text if self.affords(len(text)) else ""

    def _container(self, texts: list[str], where: str, v: Scope, own: dict[str, str]) -> bool:
        running = texts[0] == "exec"
        container = containers.execute(texts[1:]) if running else containers.run(texts[1:])
        if running:
            only = next(iter(self.containers.values())) if len(self.containers) == 1 else None
            known = self.containers.get(container.name, only)
            if known:
                container.image, container.env = known.image, {**known.env, **container.env}
                container.leftover[:0] = known.leftover
        else:
            self.containers[container.name] = container
        words = [*([container.entrypoint] if container.entrypoint else []), *container.words]
        if self.words(words, where, replace(v, inside=container, depth=v.depth + 1), {}):
            return True
        if not running and not container.entrypoint and self.of_image(container, container.words, where):
            return True
        if container.words and container.words[-1].rsplit("/", 1)[-1] in SHELLS:
            self.entered = container
        waits = any(word in ("sleep", "tail") for word in container.words)
        return not running and (waits or self.entered is container)

    def of_image(self, container: Container, words: list[str], where: str) -> bool:
        """Whether the image itself starts an engine, and these are words for it."""
        words = words[1:] if words[:1] == ["serve"] else words
        alone = words is not container.words or _FLAGS.match(" ".join([*words[:2], ""]))
        known = {**vocabulary.IMAGES, **(vocabulary.NAMED if alone else {})}
        engine = next((name for said, name in known.items() if re.search(said, container.image)), None)
        if engine is None or not any(word.startswith("-") for word in words):
            return False
        self._start(engine, words, where, Scope(inside=container), {})
        return True

    def _engine(self, texts: Sequence[str]) -> tuple[str, int, int] | None:
        """The engine that these words start, where its program stands and how many words that takes."""
        for at in range(len(texts)):
            for engine, way in self.programs:
                head = [texts[at].rsplit("/", 1)[-1], *texts[at + 1 : at + len(way)]] if texts[at] else []
                if tuple(head) == way:
                    return engine, at, len(way)
        return None

    def _before(self, texts: Sequence[str], own: dict[str, str], where: str) -> dict[str, str]:
        """Words before the program: variables for it, and wrappers, which are named."""
        env, wrappers = dict(own), []
        for text in texts:
            if re.match(r"[A-Za-z_][A-Za-z0-9_]*=(?!=)", text):  # (`--with vllm==0.24.0` is no variable)
                env[text.partition("=")[0]] = text.partition("=")[2]
            else:
                wrappers.append(text)
        if wrappers:
            why = "words before the engine's; the engine is started without them"
            self.leftover.add(f"{where}: {short(' '.join(wrappers))}", why)
        return env

    def _start(self, engine: str, words: list[str], where: str, v: Scope, own: dict[str, str]) -> None:
        inside = v.inside or self.entered
        start = Started(engine, words, where, inside.image if inside else "", files=v.files)
        if inside:
            start.files, start.mounts = {**v.files, **inside.files, **_mounted(inside, v)}, inside.mounts
            start.leftover += inside.leftover
            start.env |= inside.env
        else:
            own = {**self.exported, **own}
        for name, value in own.items():
            start.leftover += containers.environment(start.env, f"{name}={value}")
        self.starts.append(start)


def _mounted(container: Container, v: Scope) -> dict[str, str]:
    """Files that the script writes and mounts: by their path in the container."""
    found = {}
    for inside, outside in container.mounts.items():
        name = re.sub(r"^(\$\{PWD\}|\$\{\(pwd\)\})/", "", outside)
        if (text := v.files.get(plain(name))) is not None:
            found[inside] = text
    return found


def plain(path: str) -> str:
    return path.removeprefix("./")
