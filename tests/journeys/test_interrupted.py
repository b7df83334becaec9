"""Ctrl-C in whatever takes long: 130, no traceback, nothing lost, and then the command again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.sites import off
from tests.journeys.terminal import Terminal

SITE = "-i inventories/evening"


@pytest.fixture
def silent() -> Iterator[int]:
    """A port at which somebody listens and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        for one in kept:
            one.close()


def interrupted(terminal: Terminal, command: str, sees: str = "") -> str:
    terminal.begin(command)
    if sees:
        terminal.sees(sees)
    else:
        terminal.pause(2.5)
    terminal.interrupt()
    return terminal.end(130, copied=True).text  # ^C and a picture half drawn may share a line


@pytest.mark.parametrize("command", ["diagnose -", "nccl-log -", "guard -", "import -"])
def test_waiting_for_standard_input(terminal: Terminal, command: str) -> None:
    interrupted(terminal, f"sparkloom {command}")
    terminal.type("sparkloom --version").has("sparkloom")


@pytest.mark.parametrize("command", ["status", "logs", "usage", "doctor", "fleet plan --running", "fabric discover"])
def test_waiting_for_a_site(terminal: Terminal, command: str) -> None:
    off(terminal.home)
    interrupted(terminal, f"sparkloom {command} {SITE}")
    interrupted(terminal, f"sparkloom {command} {SITE}")


def test_status_that_stays(terminal: Terminal) -> None:
    off(terminal.home)
    terminal.begin(f"sparkloom status --watch {SITE}")
    terminal.sees("refused")
    terminal.interrupt()
    assert terminal.end(None, copied=True).code in (1, 130)


def test_bench_against_a_server_that_says_nothing(terminal: Terminal, silent: int) -> None:
    for _ in range(2):
        interrupted(terminal, f"sparkloom bench --url http://127.0.0.1:{silent} --model m")


def test_up_goes_on_from_there(terminal: Terminal) -> None:
    off(terminal.home)
    text = interrupted(terminal, f"sparkloom up {SITE}", sees="Refuse a run that cannot succeed")
    assert "interrupted after" in text and "up.log" in text
    terminal.type(f"sparkloom up {SITE}", 1).has("cause: ", "not up after")


def test_a_key_is_not_lost(terminal: Terminal) -> None:
    """Its hash is in the file already while the cluster is asked: then the person has the key, too."""
    site: Path = off(terminal.home)
    keys = site / "group_vars/all/keys.yml"
    text = interrupted(terminal, f"sparkloom keys add anna {SITE}")
    assert ("sk-" in text) == (keys.exists() and "anna" in keys.read_text())
