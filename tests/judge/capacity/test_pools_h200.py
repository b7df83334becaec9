"""SGLang's own pools on one NVIDIA GPU against capacity, line by line: pools-h200.jsonl, from testbed/trials/pools.py.

What was free before the load and what the weights took are the log's own: a GPU of 139 GiB has another host than a
Spark. All that follows from them is computed.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import inventory, profile
from sparkloom.inputs.profile import Measured
from sparkloom.launch import resolve
from sparkloom.launch.engines import fit
from sparkloom.launch.engines.sglang import memory
from sparkloom.launch.memory import weights
from sparkloom.launch.memory.fit import Fit, Ledger
from sparkloom.launch.view import LaunchView
from testbed.trials import pools
from tests.places import DATA, REPO

PAGE = REPO / "docs/reference/pools.md"
BEGIN, END = (
    "<!-- pools: SPARKLOOM_UPDATE_GOLDEN=1 pytest tests/judge/capacity/test_pools_h200.py -->",
    "<!-- pools end -->",
)
GB = r"([\d.]+) ?GB"
LINES = {
    "free": rf"Load weight begin\. avail mem={GB}",
    "weights": rf"mem usage={GB}\.$",
    "left": rf"Load weight end\..*avail mem={GB}",
    "slots": r"max_mamba_cache_size: (\d+)",
    "conv": rf"conv_state size: {GB}",
    "ssm": rf"ssm_state size: {GB}",
    "tokens": r"KV Cache is allocated\. #tokens: (\d+)",
    "key": rf"K size: {GB}",
    "running": r"max_running_requests=(\d+)",
    "graphs": rf"Capture cuda graph end.*mem usage={GB}",
}


@cache
def cells() -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (DATA / "pools-h200.jsonl").read_text().splitlines()[1:]]
    return {row["cell"]: row for row in rows}


def logged(cell: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in cells()[cell]["log"]:
        for name, pattern in LINES.items():
            if name not in found and (match := re.search(pattern, line)):
                found[name] = float(match[1])
    return found


def view(cell: str) -> LaunchView:
    row = cells()[cell]
    given = pools.flags(row["common"], row["flags"])
    given.pop("load-format")  # what is loaded is no fact of a launch
    set_ = [f"launch.{name.replace('-', '_')}={json.dumps(value is None or value)}" for name, value in given.items()]
    loaded = profile.load(DATA / "pools" / f"{row['model']}.yml", overrides=tuple(set_))
    asked = resolve.resolve(loaded, inventory.load()).view()
    return replace(asked, model=asked.model.model_copy(update={"measured": Measured()}))


def planned(cell: str, monkeypatch: pytest.MonkeyPatch) -> Fit:
    told = logged(cell)

    def available(_view: LaunchView, ledger: Ledger, *_: object) -> float:
        return ledger.put("free_before_load_gib", told["free"], "the log's")

    def weigh(_view: LaunchView, ledger: Ledger, *_: object) -> float:
        return ledger.put("weights_gib_per_rank", told["free"] - told["left"], "the log's; rounded once less")

    monkeypatch.setattr(memory, "available", available)
    monkeypatch.setattr(memory, "weigh", weigh)
    return fit(view(cell))


@pytest.mark.parametrize("cell", ["dense", "hybrid", "moe"])
def test_weights_are_what_was_loaded(cell: str) -> None:
    asked = view(cell)
    assert weights.gib(asked.model, asked.parallel) == pytest.approx(logged(cell)["weights"], rel=0.01)


@pytest.mark.parametrize("cell", sorted(cells()))
def test_the_pools_are_those_that_were_made(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told, plan = logged(cell), planned(cell, monkeypatch)
    assert plan.memory["kv_tokens"].value == pytest.approx(told["tokens"], rel=0.0008)
    assert plan.memory["kv_pool_gib"].value == pytest.approx(2 * told["key"], abs=0.03)
    if "slots" in told:  # two decimals of a GB are a slot or two
        assert plan.memory["state_slots"].value == pytest.approx(told["slots"], abs=1.5)
        assert plan.memory["state_pool_gib"].value == pytest.approx(told["conv"] + told["ssm"], abs=0.02)
    if "running" in told:
        assert plan.limits["max_running_requests"].value == told["running"]


@pytest.mark.parametrize(("few", "many", "batches"), [("moe", "moe-graphs-64", 48), ("moe", "moe-graphs-160", 144)])
def test_graphs_grow_no_faster_than_is_planned(few: str, many: str, batches: int) -> None:
    grown = logged(many)["graphs"] - logged(few)["graphs"]
    assert 0 < grown <= batches * 2 / 1024


def table(monkeypatch: pytest.MonkeyPatch) -> str:
    rows = [
        "| cell | KV tokens: logged | planned | state slots: logged | planned | requests at once: logged | planned |",
        "|--|--|--|--|--|--|--|",
    ]
    for cell in sorted(cells()):
        told, plan = logged(cell), planned(cell, monkeypatch)
        slots = f"{told['slots']:.0f} | {plan.memory['state_slots'].value:.0f}" if "slots" in told else " | "
        running = f"{told['running']:.0f} | {plan.limits['max_running_requests'].value}" if "running" in told else " | "
        rows.append(f"| {cell} | {told['tokens']:,.0f} | {plan.memory['kv_tokens'].value:,.0f} | {slots} | {running} |")
    return "\n".join(rows)


def test_the_page_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    head, rest = PAGE.read_text().split(BEGIN)
    fresh = f"{head}{BEGIN}\n{table(monkeypatch)}\n{END}{rest.split(END)[1]}"
    if os.environ.get("SPARKLOOM_UPDATE_GOLDEN"):
        Path(PAGE).write_text(fresh)
    assert PAGE.read_text() == fresh
