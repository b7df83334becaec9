"""`docker run` and its like: the image, what its process is given, and the options that stay behind, each with why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sparkloom.inputs.importers import vocabulary
from sparkloom.inputs.importers.expansion import OPEN
from sparkloom.inputs.importers.found import Leftover, Leftovers

PROGRAMS = ("docker", "podman", "nerdctl")
ALONE = re.compile(
    r"-[ditP]+|--(detach|interactive|tty|rm|privileged|init|read-only|publish-all|no-healthcheck|quiet|oom-kill-disable)"
)
SECRET = re.compile(r"(TOKEN|API_?KEYS?|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
INSIDE, OUTSIDE = "target|destination|dst", "source|src"  # what a mount calls its two sides
OTHER = "an option of the container that Sparkloom has no word for"


@dataclass(slots=True)
class Container:
    image: str = ""
    name: str = ""
    env: dict[str, str] = field(default_factory=dict)
    leftover: Leftovers = field(default_factory=Leftovers)
    words: list[str] = field(default_factory=list)  # behind the image
    mounts: dict[str, str] = field(default_factory=dict)  # path in the container -> path of the host
    files: dict[str, str] = field(default_factory=dict)  # path in the container -> text that the source itself has
    entrypoint: str | None = None


def begins(words: Sequence[str]) -> tuple[int, int] | None:
    """Where a container's program stands among words, and where its `run`, `exec` or `create`, behind its options."""
    for at, word in enumerate(words):
        if word.rsplit("/", 1)[-1] in PROGRAMS:
            verb = at + 1
            while verb < len(words) and (words[verb].startswith("-") or words[verb] == "container"):
                verb += 2 if words[verb] in ("-H", "--host", "-c", "--context", "--config", "-l", "--log-level") else 1
            if verb < len(words) and words[verb] in ("run", "exec", "create"):
                return at, verb
    return None


def run(words: Sequence[str]) -> Container:
    """`docker run OPTIONS IMAGE WORDS`; the words behind `run`."""
    container = Container()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if re.fullmatch(r"\$\{\w+\[[@*]\]\}", word):  # a list that is set elsewhere: options, not the image
            container.leftover.add(word, "options of the container that are set outside of this file")
            continue
        if not word.startswith("-") or word == "-":
            container.image = word
            break
        if ALONE.fullmatch(word):
            container.leftover.append(_option(word.lstrip("-"), ""))
            continue
        name, value, used = _split(words, word, at)
        at += used
        _take(container, name, value)
    container.words = list(words[at:])
    return container


def execute(words: Sequence[str]) -> Container:
    """`docker exec OPTIONS CONTAINER WORDS`; `image` stays empty."""
    container = run(words)
    container.name, container.image = container.image, ""
    return container


def clustered(words: Sequence[str]) -> Container | None:
    """Of vLLM's `run_cluster.sh IMAGE HEAD --head FOLDER OPTIONS` and spark-vllm-docker's `launch-cluster.sh`."""
    for at, word in enumerate(words):
        if word.endswith("run_cluster.sh"):
            return run([*words[at + 5 :], *words[at + 1 : at + 2]])
        if word.endswith("launch-cluster.sh"):
            return Container(next((after for option, after in pairwise(words[at:]) if option == "-t"), ""))
    return None


def _split(words: Sequence[str], word: str, at: int) -> tuple[str, str, int]:
    """An option's name and value, and how many further words it took."""
    name, equals, value = word.partition("=")
    if word.startswith("--"):
        return (name[2:], value, 0) if equals else (name[2:], words[at] if at < len(words) else "", 1)
    if len(word) > 2:
        return word[1], word[2:].removeprefix("="), 0
    return word[1], words[at] if at < len(words) else "", 1


def _take(container: Container, name: str, value: str) -> None:
    if name in ("e", "env"):
        container.leftover += environment(container.env, value)
    elif name == "entrypoint":
        container.entrypoint = value
    else:
        container.leftover.append(_option(name, value))
        if name == "name":
            container.name = value
        elif name in ("v", "volume", "mount"):
            mount(container, value)


def mount(container: Container, said: str) -> None:
    """`FOLDER:/PLACE:ro`, of which the author's machine has the first; or both by name, as `--mount` and compose do."""
    inside, outside = (re.search(rf"\b(?:{names})(?:=|': ')([^,']+)", said) for names in (INSIDE, OUTSIDE))
    if inside and outside:
        container.mounts[inside[1]] = outside[1]
    elif found := re.fullmatch(r"(.+?):(/[^:]*)(:[\w,]+)?", said):
        container.mounts[found[2]] = found[1]


def environment(env: dict[str, str], said: str) -> Iterator[Leftover]:
    """`NAME=value` into `env`; what cannot be carried over is yielded."""
    name, equals, value = said.partition("=")
    if SECRET.search(name):
        yield Leftover(f"env {name}", "a secret is never carried over; Sparkloom makes its own keys (docs/endpoint.md)")
    elif not equals:
        yield Leftover(f"env {name}", "its value is that of the author's own shell")
    elif OPEN.search(value):
        yield Leftover(f"env {name}={value}", "its value is set outside of this file")
    else:
        env[name] = value.strip(":") if name.endswith("PATH") else value  # (`:$PATH`, where it was not set)


def _option(name: str, value: str) -> Leftover:
    several = re.fullmatch(r"[ditP]+", name)  # as in -itd
    why = vocabulary.OPTIONS.get(name[0] if several else name, OTHER)
    return Leftover(f"container option {'-' if several or len(name) == 1 else '--'}{name} {value}".rstrip(), why)
