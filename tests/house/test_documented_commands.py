"""Every command of the pages works as it is written: run where nothing is needed, else parsed, and all it names found.

On a rack, `tests/rack` and the scenarios run the playbooks themselves.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.cli.playbook import PlaybookCLI

from sparkloom.cli.commands import COMMANDS
from sparkloom.cli.lazy import loaded
from sparkloom.measure.bench import command as bench
from testbed import __main__ as testbed
from tests.cli.window import piped
from tests.house.documented import Command, commands
from tests.places import REPO

ALL = commands()
NO_SITE = {"profiles", "lint", "plan", "show", "fabric", "diagnose", "completion", "import", "export"}
INSTALLED = {"sparkloom", "ansible-playbook", "pytest", "python", "molecule"}


def of(program: str) -> Any:
    chosen = {command.text: command for command in ALL if command.program == program}
    return pytest.mark.parametrize("command", chosen.values(), ids=str)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A page's files of the reader's own, in a folder that has the repository's too."""
    for entry in REPO.iterdir():
        if entry.name not in (".git", ".build", "build"):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "engine.log").write_text("torch.OutOfMemoryError: CUDA out of memory\n")
    (tmp_path / "recipe.yaml").write_text("model: a/b\ncontainer: c:1\ncommand: vllm serve a/b --max-num-seqs 4\n")
    (tmp_path / "rank0.log").write_text("spark1:7:7 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]\n")
    monkeypatch.chdir(tmp_path)


def test_pages_have_commands_and_each_program_is_known() -> None:
    assert len(ALL) > 100
    assert {command.program for command in ALL} <= INSTALLED | {"make", "cp"}


def test_what_is_to_be_copied_names_the_installed_program() -> None:
    """`sparkloom` and `python -m testbed` alone are on nobody's PATH, and molecule cannot go without."""
    assert [str(c) for c in ALL if c.block and c.program in INSTALLED and not c.words[0].startswith(".venv/bin/")] == []
    assert [str(c) for c in ALL if c.program == "molecule"] == []


@of("sparkloom")
def test_sparkloom(command: Command) -> None:
    name, *words = (match for word in command.words[1:] for match in (_globbed(word) if "*" in word else [word]))
    if name in NO_SITE and words[:1] != ["discover"]:
        whole = len(words) > (name == "show") or words == ["schema"] or name in ("profiles", "fabric")
        done = piped(name, *words) if whole else piped(name, *words, "-h")
        assert done.code in (0, 1) and not re.search("usage|unexpected", done.errors, re.I), done.errors
        return
    entry = next(known for known in COMMANDS if known.name == name)
    if entry.below and words:
        entry, words = next(below for below in entry.below if below.name == words[0]), words[1:]
    if not words:  # a mention
        return
    if entry.plain:
        bench.parse(words)
    else:
        loaded(entry).make_context(entry.name, words)  # ends where an option or a value is wrong


def _globbed(pattern: str) -> list[str]:
    return [str(path) for path in Path().glob(pattern)]


@of("ansible-playbook")
def test_ansible_playbook(command: Command) -> None:
    words = command.words[1:]
    cli = PlaybookCLI(["ansible-playbook", *words])
    cli.init_parser()
    read = cli.parser.parse_args(words)
    assert read.args and all((REPO / playbook).is_file() for playbook in read.args)
    for inventory in read.inventory or ():
        assert (REPO / inventory / "hosts.yml").is_file()
    for given in read.extra_vars or ():
        assert given.partition("=")[0] in _variables(), given
    assert set(read.tags or ()) <= {path.stem for path in (REPO / "playbooks").glob("*.yml")}


def _variables() -> set[str]:
    """What a person may set: the roles' public variables, and what a site's inventory says."""
    files = [*REPO.glob("roles/*/defaults/main.yml"), *REPO.glob("inventories/gb10/group_vars/all/*.yml")]
    named = {key for file in files for key in yaml.safe_load(file.read_text()) or {}}
    said = [*REPO.glob("playbooks/*.yml"), *REPO.glob("roles/*/defaults/main.yml")]
    return named | {name for file in said for name in re.findall(r"\b[a-z]+_\w+\b", file.read_text())}


@of("python")
def test_python(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = command.words[1:]
    if words[:2] == ["-m", "testbed"]:
        _parsed_by_the_test_bed(words[2:], monkeypatch)
        return
    if words[:2] == ["-m", "pytest"]:
        _pytest(words[2:])
        return
    named = f"{words[1].replace('.', '/')}" if words[0] == "-m" else words[0]
    places = [REPO / named, REPO / f"{named}.py", REPO / "scripts" / f"{named}.py", REPO / named / "__main__.py"]
    assert any(place.exists() for place in places), named


def _parsed_by_the_test_bed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not words:
        return
    monkeypatch.setattr(sys, "argv", ["testbed", *(word.partition("|")[0] for word in words[1:])])
    read = argparse.ArgumentParser.parse_args

    class Read(Exception):
        """It was understood; nothing is done."""

    def caught(self: argparse.ArgumentParser, *given: Any) -> None:
        read(self, *given)
        raise Read

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", caught)
    with pytest.raises(Read):
        import_module(testbed.COMMANDS[words[0]][0]).main()


@of("pytest")
def test_pytest(command: Command) -> None:
    _pytest(command.words[1:])


def _pytest(words: list[str]) -> None:
    told = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    markers = {line.partition(":")[0] for line in told}
    for before, word in zip(["", *words], words, strict=False):
        if before == "-m":
            assert set(re.findall(r"\w+", word)) - {"not", "and", "or"} <= markers
        elif not word.startswith("-") and before != "-n":
            assert (REPO / word).exists(), word


@of("make")
def test_make(command: Command) -> None:
    goals = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.M))
    assert command.words[1] in goals or command.block  # the floor plan has a room of that name


@of("cp")
def test_cp(command: Command) -> None:
    assert (REPO / command.words[-2]).exists()
