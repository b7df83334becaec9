"""A grid of configurations, each served and refused by SGLang itself: what works, what is fastest, and why one ended.

The model recites a page (testbed/standins/hub/tiny.py): its answers are text, so that a cell can win.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.base import names
from testbed.beds.rack import inventory
from tests.places import REPO
from tests.rack import real
from tests.rack.running import run
from tests.rack.test_real_sglang import BACK, GLOO

pytestmark = real.MARKS
GRID = REPO / "testbed/trials/grid_sglang.yml"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("matrix")
    with real.profiles():
        group = real.Served("tiny-recites--sglang-2node", "sglang", 30000, "tiny", ("spark1", "spark2"), BACK, GLOO)
        group.start()
        switch = " ".join(["ansible-playbook", "playbooks/switch.yml", *GLOO])
        grid = folder / "grid.yml"
        grid.write_text(GRID.read_text().replace("inventories/kind", str(inventory.path())))
        words = ["--results", str(folder / "cells"), "-o", str(folder), "--switch", switch, "--json"]
        done = run("sparkloom", "matrix", str(grid), "run", *words)
        cells = [json.loads(path.read_text()) for path in sorted((folder / "cells").glob("*.json"))]
        yield {"done": done, "cells": cells, "folder": folder}


def _of(ran: dict[str, Any], backend: str) -> list[dict[str, Any]]:
    assert len(ran["cells"]) == 6, ran["done"].stderr[-3000:]
    return [cell for cell in ran["cells"] if cell["settings"]["launch.attention_backend"] == backend]


def test_what_it_serves_is_ok_and_its_answers_are_text(ran: dict[str, Any]) -> None:
    found = _of(ran, "torch_native")
    assert [cell["status"] for cell in found] == ["ok"] * 4, [(cell["status"], cell["note"]) for cell in found]


def test_what_only_a_gpu_can_do_ended_while_it_started_and_the_engine_says_why(ran: dict[str, Any]) -> None:
    found = _of(ran, "triton")
    assert [cell["status"] for cell in found] == ["startup_crash"] * 2, found
    assert all(cell["trace_tail"] and cell["telling"] for cell in found), found


def test_one_request_at_a_time_does_not_win(ran: dict[str, Any]) -> None:
    winner = json.loads(ran["done"].stdout)["winner"]
    (settings,) = (cell["settings"] for cell in ran["cells"] if cell["id"] == winner)
    assert settings["launch.max_running_requests"] == 4
    report = (ran["folder"] / "sglang.md").read_text()
    (names.REPO / ".build/matrix-sglang.md").write_text(report)
    (names.REPO / ".build/matrix-sglang.html").write_text((ran["folder"] / "sglang.html").read_text())
    assert "max_running_requests" in report
    assert Path(ran["folder"] / "sglang.html").stat().st_size > 10_000
