"""All of site.yml on the virtual rack: it ends with an answer; a second run changes nothing and costs little."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.rack import inventory

REPO = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.rack, pytest.mark.slow]
# First runs of a node's roles, and all that a second one may send to a host.
MODULE_RUNS = 25


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{REPO}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(argv, cwd=REPO, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)


def play(times: Path, *extra: str) -> tuple[str, dict[str, dict[str, int]], dict[str, Any]]:
    """Output, recap per host, and what the run cost."""
    done = run(
        "ansible-playbook", "-i", str(inventory.path()), "site.yml", *extra,
        SPARKLOOM_TIMES_JSON=str(times), ANSIBLE_NOCOLOR="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    recap = {
        host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)}
        for host, counts in re.findall(r"^(spark\d)\s+: (.*)$", done.stdout, re.M)
    }
    return done.stdout, recap, json.loads(times.read_text())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    loaded = run(sys.executable, "-m", "testbed.engine", "load")
    assert loaded.returncode == 0, loaded.stdout[-2000:] + loaded.stderr[-2000:]
    times = tmp_path_factory.mktemp("site") / "times.json"
    return play(times)[0], times


def test_it_ends_with_an_answer(served: tuple[str, Path]) -> None:
    output, _ = served
    assert "2 rails hold between 4 nodes" in output
    assert re.search(r"\d+ tokens at [\d.]+ tok/s", output)
    assert re.search(r"4 ranks ready after \d+ s", output)


def test_a_second_run_changes_nothing_and_costs_little(served: tuple[str, Path]) -> None:
    _, recap, cost = play(served[1])
    assert set(recap) == {"spark1", "spark2", "spark3", "spark4"}
    assert all(counts["changed"] == 0 and counts["failed"] == 0 for counts in recap.values()), recap
    assert all(0 < runs <= MODULE_RUNS for runs in cost["module_runs"].values()), cost


def test_a_dry_run_goes_through(served: tuple[str, Path]) -> None:
    _, recap, _ = play(served[1], "--check", "--diff")
    assert all(counts["failed"] == 0 and counts["changed"] == 0 for counts in recap.values()), recap
