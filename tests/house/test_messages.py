"""What a message sends people to is there: files of the repository, commands of the program, goals of the Makefile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sparkloom.cli.commands import COMMANDS
from tests.places import REPO

FOLDERS = "docs|playbooks|scripts|roles|plugins|inventories|model_profiles|testbed|tests"
PATH = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[\w/.+-]*")
COMMAND = re.compile(
    r"(?:^|[`(:;,>]\s?|\.venv/bin/|\brun |\bwith |\bor |\b[Nn]ow )sparkloom ((?!is |was )[a-z][a-z-]*)( [a-z][a-z-]*)?",
    re.M,
)
GOAL = re.compile(r"(?:`|\brun |; )make ([a-z-]+)(?=$|[`.,:;)])", re.M)
EXAMPLES = {"inventories/home"}  # a person's own
HOLE = "\0"  # where a message has a value


def texts(file: Path) -> Iterator[str]:
    """The strings of a program, docstrings too; of anything else the whole text."""
    if file.suffix != ".py":
        yield file.read_text(encoding="utf-8")
        return
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def files() -> tuple[Path, ...]:
    kinds = {".py", ".yml", ".yaml", ".j2", ".sh", ".md"}
    tops = (REPO / "scripts" / "sparkloom", REPO / "plugins", REPO / "roles", REPO / "playbooks")
    return tuple(sorted(path for top in tops for path in top.rglob("*") if path.suffix in kinds and path.is_file()))


@cache
def goals() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.M))


def wrong(text: str) -> Iterator[str]:
    """What a text names and is not there."""
    for match in PATH.finditer(text):
        named, after = match[0].rstrip("."), text[match.end() : match.end() + 1]
        if after in (HOLE, "<", "{", "*"):  # a part of it is filled in
            named = named.rpartition("/")[0]
        if named.startswith("testbed/"):
            yield f"{named}: the product knows nothing of the test bed"
        elif named not in EXAMPLES and not (REPO / named).exists():
            yield named
    commands = {command.name: {below.name for below in command.below} for command in COMMANDS}
    for match in COMMAND.finditer(text):
        name, below = match[1], (match[2] or "").strip()
        if name not in commands or (commands[name] and below and below not in commands[name]):
            yield f"sparkloom {name} {below}".strip()
    yield from (f"make {goal}" for goal in GOAL.findall(text) if goal not in goals())


@pytest.mark.parametrize("top", ["scripts/sparkloom", "plugins", "roles", "playbooks"])
def test_what_a_message_names_is_there(top: str) -> None:
    asked = [file for file in files() if file.is_relative_to(REPO / top)]
    assert asked
    lost = {f"{file.relative_to(REPO)}: {what}" for file in asked for text in texts(file) for what in wrong(text)}
    assert not lost, "\n".join(sorted(lost))


@pytest.mark.parametrize(
    "text",
    [
        "take K3s off first (roles/k3s/tasks/gone.yml)",
        "docs/gone.md has the table.",
        "ansible-playbook playbooks/gone.yml",
        "run `sparkloom gone`",
        "`sparkloom evidence gone`",
        "run make gone",
        "see testbed/rack",
    ],
)
def test_what_is_gone_is_noticed(text: str) -> None:
    assert list(wrong(text))


def test_what_is_there_is_not() -> None:
    text = f"`sparkloom evidence best`, `make lint`, docs/bench.md. inventories/{HOLE}/hosts.yml and roles/k3s/"
    assert list(wrong(text)) == []
