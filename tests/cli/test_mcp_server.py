"""`sparkloom mcp` where its library is not installed; tests/journeys/test_agent.py asks it as agents do."""

from __future__ import annotations

import sys

import pytest

from sparkloom.base.errors import InputError
from sparkloom.cli import mcp_server
from sparkloom.cli.commands import COMMANDS


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(InputError, match=r"pip install 'sparkloom\[mcp\]'"):
        mcp_server.mcp()


def test_every_tool_is_a_command_and_what_it_shows_first_is_one() -> None:
    names = {command.name for command in COMMANDS} | {
        f"{command.name} {below.name}" for command in COMMANDS for below in command.below
    }
    assert {*mcp_server.READING, *mcp_server.CHANGING, *mcp_server.CHANGING.values()} <= names


@pytest.mark.parametrize("name", [*mcp_server.READING, *mcp_server.CHANGING])
def test_a_tools_arguments_have_words_and_types(name: str) -> None:
    schema = mcp_server.schema(name)
    assert all("type" in one or "enum" in one for one in schema["properties"].values()), schema
    assert set(schema["required"]) <= set(schema["properties"])
    assert not {"json", "help", "output", "watch", "follow"} & set(schema["properties"])
