"""Every table that a command prints, at 80, 100 and 160 columns: what is golden fits its window and breaks no row.

SPARKLOOM_UPDATE_GOLDEN=1 .venv/bin/pytest -q tests/cli/test_tables.py     # write them anew, then read the diff
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sparkloom.base import table
from sparkloom.base.finding import Finding
from sparkloom.measure.bench import result
from sparkloom.site.doctor.verdict import Report
from tests import golden_files, inventories
from tests.cli.window import piped, seen
from tests.places import REPO

COLUMNS = (80, 100, 160)
OSS = "openai--gpt-oss-120b"
SITE = str(REPO / "inventories/gb10")
NCCL = str(REPO / "tests/data/nccl/constructed")
TABLES: dict[str, tuple[str, ...]] = {
    "profiles": ("profiles",),
    "profiles-fits": ("profiles", "--fits"),
    "plan": ("plan", OSS),
    "plan-explain": ("plan", OSS, "--explain"),
    "evidence-find": ("evidence", "find", OSS),
    "evidence-best": ("evidence", "best", "GLM-4.7"),
    "fabric": ("fabric", "-i", SITE),
    "image-list": ("image", "list"),
    "keys-list": ("keys", "list", "-i", "SITE"),
    "usage": ("usage", "-i", SITE, "--prometheus", "http://127.0.0.1:9"),
    "doctor": ("doctor", "-i", SITE),
    "nccl-log": ("nccl-log", "LOG"),
}
HEADS = {
    "profiles": "profile, engine, nodes, tp, ep, status, n1, n4, n8",
    "profiles-fits": "profile, on, tok/s measured, predicted, first token s, room, verdict",
    "evidence-best": "outcome, tp, ep, release, moe / attention / fp4 gemm, n1, n4, n8, id",
    "evidence-find": "outcome, tp, ep, release, moe / attention / fp4 gemm, n1, n4, n8, id, differs",
    "fabric": "node, rail, PF, PCI, VF, interface, MAC, address, MTU, HCA",
    "image-list": "recipe, engine, image, pinned, profiles",
    "keys-list": "name, models, requests/min, tokens/min, expires, made, admin",
    "usage": "person, model, requests, refused, prompt tokens, completion tokens",
    "nccl-log": "rank, transport, HCAs, NCCL, why",
}
KEYS = """client_keys:
  - {name: anna, hash: sha256:%s, models: all, made: 2026-11-01}
  - name: bob
    hash: sha256:%s
    models: [glm, oss]
    requests_per_minute: 60
    tokens_per_minute: 90000
    made: 2026-11-02
"""


def used(prompt: int) -> dict[str, Any]:
    return {"requests": 1204, "refused": 3, "prompt_tokens": prompt, "completion_tokens": 1_310_022}


USED = [
    {"person": "anna", "model": "deepseek-v4-flash", **used(48_210_334)},
    {"person": "a-colleague-with-a-long-name", "model": "nemotron-3-super-120b-a12b", **used(912)},
    {"person": "", "model": "", **used(0)},
]
HEALTH = Report(
    [f"spark{n}" for n in range(1, 5)],
    [
        Finding("spark2", "sysctl vm.swappiness", "60", "1", "playbooks/nodes.yml puts it right", area="hosts"),
        Finding("spark3", "sysctl vm.swappiness", "60", "1", "playbooks/nodes.yml puts it right", area="hosts"),
        Finding("spark4", "clock", "NTP off", "NTP on", "timedatectl set-ntp true", "warning", area="hosts"),
    ],
)


@pytest.fixture
def today() -> Iterator[None]:
    """A site that answers, on a day that stays the same."""
    day = mock.Mock(today=lambda: datetime.date(2026, 11, 26))
    with (
        mock.patch("sparkloom.cli.profiles.date", day),
        mock.patch("sparkloom.cli.serving.run", lambda *_: HEALTH),
        mock.patch("sparkloom.site.usage.of_prometheus", lambda *_: []),
        mock.patch("sparkloom.site.usage.by_person", lambda _: USED),
    ):
        yield


def given(word: str, folder: Path) -> str:
    if word == "SITE":
        folder = inventories.own(folder, "site")
        keys = folder / "group_vars/all/keys.yml"
        keys.touch(0o600)
        keys.write_text(KEYS % ("a" * 64, "b" * 64))
        return str(folder)
    return next(str(path) for path in sorted(Path(NCCL).rglob("*")) if path.is_file()) if word == "LOG" else word


@pytest.mark.parametrize("name", TABLES)
def test_golden_tables(name: str, today: None, tmp_path: Path) -> None:
    words = [given(word, tmp_path) for word in TABLES[name]]
    for columns in COLUMNS:
        shown = seen(columns, *words)
        assert shown.code in (0, 1) and len(shown.widest.rstrip()) <= columns, shown.widest
        text = re.sub(r"(?m)[ \t]+$", "", shown.text.replace(str(tmp_path / "site"), "SITE").replace(f"{REPO}/", ""))
        golden_files.check("tables", f"{name}-{columns}.txt", re.sub(r"since \d{4}-\d\d-\d\d", "since DAY", text))


@pytest.mark.parametrize("columns", COLUMNS)
def test_golden_table_of_a_measurement(columns: int) -> None:
    """Of figures alone: the load is made and judged in tests/measure."""
    spread = {"p50": 412.5, "p95": 1022.1, "p99": 1203.0}
    level = {
        "mode": "closed", "concurrency": 8, "streams": 8, "n": 8, "ok": 32, "requests": 32, "output_tokens": 16_384,
        "estimated": False, "partial": False, "ttft_ms": spread, "itl_ms": spread, "decode_tok_s": 17.25,
        "sum_tok_s": 138.0, "wall_tok_s": 129.4, "accept_length": 2.41, "guard": {"verdict": "ok", "kind": None},
        "at_once": 8, "engine": {}, "rate": None,
    }  # fmt: skip
    text = result.table({"levels": [level], "problems": [], "provenance": {}}, columns)
    rows = text.splitlines()[:2]
    assert all(len(row) <= columns for row in rows)
    golden_files.check("tables", f"bench-{columns}.txt", "\n".join(rows) + "\n")


@pytest.mark.parametrize("name", HEADS)
def test_a_pipe_gets_every_column_and_a_row_a_line(name: str, today: None, tmp_path: Path) -> None:
    """Others' scripts read them: a column may come at the end, none goes."""
    lines = piped(*(given(word, tmp_path) for word in TABLES[name])).lines
    assert re.split(r" {2,}", lines[0]) == HEADS[name].split(", ")
    assert all(line and not line.startswith(" ") for line in lines[1:3])


def test_a_healthy_site_ends_with_one_green_line_that_says_what_was_looked_at() -> None:
    with mock.patch("sparkloom.cli.serving.run", lambda *_: Report(HEALTH.nodes, [])):
        lines = seen(80, "doctor", "-i", SITE).lines
    assert lines[-1].strip() == "as planned on 4 nodes: hosts, fabric, cluster, weights, serving; 0 findings"


def test_columns_go_in_the_order_that_is_said_and_what_is_foreign_is_spelled() -> None:
    names, row = ("name", "size>", "why"), ("café", "1", "be\x1b[31mcause")
    assert table.lines(names, [row]) == ["name  size  why", "café     1  be\\u001b[31mcause"]
    assert table.lines(names, [row], 14, ("why", "size>")) == ["name  size", "café     1"]
    assert table.lines(names, [row], 5, ("why", "size>")) == ["name", "café"]
    assert table.lines(names, [("漢字", "1", "x")], 0)[0] == "name  size  why"
    told = table.lines(names, [("a" * 30, "1", "because of it")], 16)
    assert told == ["a" * 16, "a" * 14, "  size 1, why", "  because of it"]
