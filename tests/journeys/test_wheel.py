"""Somebody without a clone: the wheel through uvx and pipx."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.journeys.terminal import PROGRAMS, Terminal, quoted


@pytest.mark.slow
@pytest.mark.parametrize("way", ["uvx --from {} sparkloom", "uvx pipx run --spec {} sparkloom"], ids=["uvx", "pipx"])
def test_the_wheel_answers_where_somebody_works(home: Path, wheel: Path, way: str) -> None:
    cache = os.environ.get("UV_CACHE_DIR") or str(Path("~/.cache/uv").expanduser())  # what make setup fetched
    uv = home / "bin"
    uv.mkdir()
    for name in ("uv", "uvx"):
        (uv / name).symlink_to(PROGRAMS / name)
    terminal = Terminal(home, path=str(uv), UV_CACHE_DIR=cache)
    command = way.format(quoted(wheel))
    # how these two draw their own progress is theirs
    seen = terminal.type(f"{command} plan glm-4.7-nvfp4 --json 2>log", None, copied=True)
    log = (home / "log").read_text()
    if seen.code and any(word in log.lower() for word in ("registry", "connect", "network", "dns")):
        pytest.skip(f"no package index here: {log[-300:]}")
    told = json.loads(seen.text)
    assert seen.code == 0 and told["fits"] is True and told["cluster"] == "gb10"
    assert sorted(path.name for path in home.iterdir() if not path.name.startswith(".")) == ["bin", "log"]


def test_it_works_in_the_folder_where_it_is_called(home: Path, programs: Path) -> None:
    terminal = Terminal(home, path=str(programs))
    terminal.type("sparkloom --version").has("sparkloom 0.")
    terminal.type("sparkloom up", 2).has("which site?")
    for shell in ("bash", "zsh", "fish"):
        terminal.type(f"sparkloom completion {shell}", copied=True).has("_SPARKLOOM_COMPLETE")
    terminal.type("sparkloom render glm-4.7-nvfp4 -o out").has("wrote out/")
    terminal.type("sparkloom fleet plan", 0)
    terminal.type("python -m sparkloom.cli plan glm-4.7-nvfp4 | head -1", copied=True).has("should start")
    assert sorted(path.name for path in home.iterdir() if not path.name.startswith(".")) == ["out"]
