"""What models were asked is in a file of the Spark: by whom, how much, no text. It outlives Envoy, and is bounded."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.site import usage
from testbed.standins.pacing.process import Engine
from tests.render.router.running import ALICE, CAROL, Router, running
from tests.until import until

pytestmark = pytest.mark.oracle
SECRET = "what nobody but the engine reads"


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def refused(router: Router) -> None:
    assert router.post("alpha", "sk-nobody").status == 401
    assert router.post("none-such", ALICE).status == 404
    while router.post("alpha", CAROL).status != 429:
        pass


def test_who_asked_what_outlives_the_program_and_no_text_is_in_it(tmp_path: Path) -> None:
    engine, file = Engine("alpha", "ttft=0.01", "rate=200"), tmp_path / "access.log"
    for _ in range(2):
        with running(tmp_path, {"alpha": engine}) as router:
            router.post("alpha", ALICE, 7, messages=[{"role": "user", "content": SECRET}])
            refused(router)
        said = (tmp_path / "log").read_text()
        assert SECRET not in said + file.read_text() and ALICE not in said + file.read_text()
        assert all(f'"status":{status}' in said for status in (401, 404, 429)) and '"status":200' not in said
    kept = [row for row in rows(file) if row["completion_tokens"] == 7]
    assert len(kept) == 2 and {(row["person"], row["model"], row["status"]) for row in kept} == {
        ("alice", "alpha", 200)
    }
    assert all(row["model"] == "alpha" and row["person"] in ("alice", "carol") for row in rows(file))
    assert all(row["ms"] >= 0 and row["prompt_tokens"] > 0 for row in kept)
    engine.down()


def test_a_full_one_is_the_older_one(tmp_path: Path) -> None:
    engine, file = Engine("alpha", "ttft=0.01", "rate=200"), tmp_path / "access.log"
    older = tmp_path / "access.log.1"
    older.write_text("of before\n")
    file.write_bytes(b"x" * (33 << 20))
    with running(tmp_path, {"alpha": engine}) as router:
        until(lambda: older.stat().st_size > 1 << 20 and file.exists() and file.stat().st_size < 1 << 20, 15)
        router.post("alpha", ALICE, 9)
    assert any(row["completion_tokens"] == 9 for row in rows(file)) and older.stat().st_size < 34 << 20
    engine.down()


def pod(name: str, *, running: bool = True) -> Any:
    begun = [SimpleNamespace(container_id=name)] if running else None
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name), spec=SimpleNamespace(node_name="spark1"),
        status=SimpleNamespace(container_statuses=begun),
    )  # fmt: skip


def test_it_is_read_beside_the_router_and_lines_of_others_are_passed_over() -> None:
    """Not by the kubelets' proxy, which would also run commands in any pod: no administrator has it."""

    def line(at: str, model: str) -> str:
        return json.dumps({"at": at, "person": "alice", "model": model, "prompt_tokens": 3, "extra": "x"})

    lines = [line("2026-11-26T10:00:02Z", "second"), "no line", "[1]", line("2026-11-26T10:00:01Z", "first")]
    asked = []

    def ask(pod: str, words: list[str], seconds: float) -> str:
        assert words[-1] == "/var/log/sparkloom/router/access.log"
        asked.append(pod)
        return "\n".join([*lines, line("2026-11-20", "old")])

    there = [pod("a"), pod("b"), pod("c", running=False)]  # while one takes the other's place
    reached: Any = SimpleNamespace(pods=lambda labels: there, ask=ask)
    found, of = usage.each(reached, datetime.date(2026, 11, 26))
    assert [row["model"] for row in found] == ["first", "second"] and set(found[0]) == set(usage.EACH)
    assert of.startswith("of spark1; ") and asked == ["b"], "a Spark's log is read once"


def test_what_reads_it_is_a_program_s_own_words(tmp_path: Path) -> None:
    """As the pod's shell runs it, also where the older file is not there."""
    (tmp_path / "access.log").write_text("now\n")
    asked: list[list[str]] = []
    reached: Any = SimpleNamespace(pods=lambda _: [pod("a")], ask=lambda _, words, seconds: asked.append(words) or "")
    usage.each(reached, datetime.date(2026, 11, 26))
    done = subprocess.run([*asked[0][:-1], tmp_path / "access.log"], capture_output=True, text=True, check=True)
    assert done.stdout == "now\n"
