"""Asking how it is used, and getting it wrong. Each command's own help: tests/cli/test_every_help.py."""

from __future__ import annotations

import re

import pytest

from tests.journeys.terminal import Terminal


@pytest.mark.parametrize(
    "words", ["", "nonsense", "plan", "plan glm-4.7-nvfp4 b", "keys", "keys nonsense", "matrix x y"]
)
def test_what_is_not_a_command_is_refused_with_how_it_is_used(terminal: Terminal, words: str) -> None:
    seen = terminal.type(f"sparkloom {words}", 2)
    assert re.search(r"[Uu]sage:", seen.text), seen.text


def test_every_form_of_asking(terminal: Terminal) -> None:
    terminal.type("sparkloom --version").has("sparkloom")
    terminal.type("sparkloom --help").has("Exit status", "plan", "up", "status")
    terminal.type("sparkloom keys -h").has("add", "list", "revoke")
    terminal.type("sparkloom bench --help").has("usage: sparkloom bench", "--url")
    terminal.type("sparkloom plan --help | cat").has("Usage: sparkloom plan", "--set")
    terminal.type("sparkloom plan --set", 2).has("--set")
    terminal.type("sparkloom bench --url", 2).has("--url", "--help")
    terminal.type("sparkloom plan ''", 2)
    terminal.type("sparkloom plan $'a\\x1b[31mb'", 2).has("\\u001b")
    terminal.type("sparkloom plan $(printf 'x%.0s' {1..5000})", 2)
    terminal.type("sparkloom completion ksh", 2).has("ksh")
