"""One way in: every command of the test bed says what it does, and asking for that does nothing."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from testbed import __main__ as door
from testbed.base import names, store
from testbed.beds.rack import hub
from testbed.standins.hub import __main__ as hub_alone
from tests.places import REPO


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command adds folders to it."""
    monkeypatch.setenv("PATH", os.environ["PATH"])


@pytest.mark.parametrize("name", door.COMMANDS)
def test_help_says_what_it_does_and_does_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names, "KUBECONFIG", Path("/nowhere"))
    monkeypatch.setattr(sys, "argv", ["testbed", name, "--help"])
    with pytest.raises(SystemExit) as end:
        door.main()
    shown = capsys.readouterr().out
    assert end.value.code == 0 and shown.startswith(f"usage: python -m testbed {name} ")
    assert shown.count("python -m testbed") == 1  # the description says what it is, not once more how it is called


class Built(Exception):
    """A command's parser, in place of what it would do."""


def parser(name: str, monkeypatch: pytest.MonkeyPatch) -> argparse.ArgumentParser:
    def caught(self: argparse.ArgumentParser, *_: object) -> None:
        raise Built(self)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", caught)
    with pytest.raises(Built) as built:
        import_module(door.COMMANDS[name][0]).main()
    (made,) = built.value.args
    assert isinstance(made, argparse.ArgumentParser)
    return made


def unexplained(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            explained = {choice.dest for choice in action._choices_actions if choice.help}
            for name, sub in action.choices.items():
                yield from () if name in explained else [name]
                yield from unexplained(sub)
        elif not action.help:
            yield f"{parser.prog}: {action.option_strings or action.dest}"


@pytest.mark.parametrize("name", door.COMMANDS)
def test_every_argument_has_a_word_of_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(unexplained(parser(name, monkeypatch))) == []


@pytest.mark.parametrize("name", ["kills", "refusals"])
def test_without_a_rack_it_says_so_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names, "KUBECONFIG", tmp_path / "kubeconfig")
    monkeypatch.setattr(sys, "argv", ["testbed", name])
    assert door.main() == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and shown.count("\n") == 1


def test_the_hub_keeps_its_files_below_the_repository_and_is_renewed_with_its_own_sources() -> None:
    assert hub_alone.DATA == REPO / ".build/hub"
    assert Path(str(hub_alone.__file__)).parent == hub.SOURCES and hub._code() == store.key_of([hub.SOURCES])


NAMED = re.compile(r"python -m testbed ([a-z-]+)(?: +([a-z][a-z-]*))?")


def named() -> set[tuple[str, str]]:
    """Every command that a page or a message of the test bed names."""
    files = [REPO / "README.md", *REPO.glob("docs/**/*.md"), *REPO.glob("molecule/*.md"), *REPO.glob("testbed/**/*.py")]
    return {(name, command or "") for file in files for name, command in NAMED.findall(file.read_text())}


def test_every_command_that_is_named_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    places = named()
    assert {("rack", "up"), ("vm", "up"), ("engine", "fault"), ("bare", "up")} <= places
    assert {name for name, _ in places} <= door.COMMANDS.keys()
    for name in door.COMMANDS:
        actions = parser(name, monkeypatch)._actions
        choices = [action.choices for action in actions if isinstance(action, argparse._SubParsersAction)]
        for command in (command for where, command in places if where == name and command and choices):
            assert command in choices[0], f"python -m testbed {name} {command}"
