"""playbooks/benchmark.yml against the pacing server: valid figures pass, garbage does not, --check runs nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import inventories
from tests.measure.bench.conftest import REPO, Paced, serving


@pytest.fixture(scope="module")
def paced():  # type: ignore[no-untyped-def]
    with serving("ttft=0.05", "rate=400") as server:
        yield server


def play(server: Paced, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = {"benchmark_url": server.url, "benchmark_folder": str(folder), "benchmark_concurrency": [1, 2],
             "benchmark_max_tokens": 60}  # fmt: skip
    site = inventories.own(folder.parent, f"{folder.name}-site")
    env = {**os.environ, "PATH": f"{REPO}/.venv/bin:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        ["ansible-playbook", "-i", str(site), "playbooks/benchmark.yml", "-e", json.dumps(given), *words],
        cwd=REPO, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_figures_are_shown_and_kept(paced: Paced, tmp_path: Path) -> None:
    done = play(paced, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = tmp_path.glob("bench-*.json")
    data = json.loads(kept.read_text())
    assert [level["concurrency"] for level in data["levels"]] == [1, 2] and data["provenance"]["site"] == "gb10"
    assert "n=2" in done.stdout and str(kept) in done.stdout


def test_garbage_fails_and_is_kept(tmp_path: Path) -> None:
    with serving("ttft=0.05", "rate=400", "garbage=flood") as server:
        done = play(server, tmp_path, "-e", "benchmark_max_tokens=400")
    assert done.returncode == 2 and "not valid" in done.stdout and len(list(tmp_path.glob("bench-*.json"))) == 1


def test_nothing_is_measured_in_check_mode(paced: Paced, tmp_path: Path) -> None:
    assert play(paced, tmp_path, "--check").returncode == 0 and not list(tmp_path.iterdir())


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = play(Paced("http://localhost:1"), tmp_path)
    assert done.returncode == 2 and "http://localhost:1 does not answer" in done.stdout
