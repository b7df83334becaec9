"""What goes wrong while a model is served: ranks are killed, what they need is taken away; what is told meanwhile."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from testbed.base import names
from testbed.beds.rack import inventory
from testbed.trials import kills, refusals
from tests.rack.running import run, site_status

pytestmark = [pytest.mark.rack, pytest.mark.slow]
# Kills by chance (`python -m testbed kills` does twenty); another number tries others.
SEED = int(os.environ.get("SPARKLOOM_SEED", "0"))
KILLS = int(os.environ.get("SPARKLOOM_HANDFUL", "4"))
NAMED_AFTER = 60


def test_status_says_what_is_served(group: kills.ServedGroup) -> None:
    found = site_status()
    assert found["serving"] and found["proved"] and found["current"] and found["since"] and found["digest"]
    assert found["transport"].startswith("roce: "), found["transport"]
    ranks = found["ranks"]
    assert [rank["rank"] for rank in ranks] == ["0", "1", "2", "3"]
    assert [rank["node"] for rank in ranks] == list(names.NODES.values())
    for rank in ranks:
        assert rank["state"] == "ready" and rank["restarts"] >= 0 and rank["cause"] == ""
        said = rank["supervisor"]
        assert said["serving"] and said["epoch"] >= 1 and said["transport"].startswith("NCCL transport roce: "), said


def test_logs_come_from_every_rank_and_from_one(group: kills.ServedGroup) -> None:
    every = run("sparkloom", "logs", "-i", str(inventory.path()))
    assert every.returncode == 0, every.stderr
    assert {line.split("]")[0] for line in every.stdout.splitlines()} == {f"[rank {rank}" for rank in range(4)}
    one = run("sparkloom", "logs", "-i", str(inventory.path()), "--rank", "2")
    marks = {re.sub(r"epoch \d+", "epoch #", line.split("]")[0]) for line in one.stdout.splitlines()}
    assert marks == {"[sparkloom rank 2 epoch #", "[rank 2 epoch #"}
    none = run("sparkloom", "logs", "-i", str(inventory.path()), "--rank", "7")
    assert none.returncode == 2 and "rank 7; there are: 0, 1, 2, 3" in none.stderr


def test_killed_ranks_come_back_with_a_token(group: kills.ServedGroup) -> None:
    planned = kills.by_chance(SEED, KILLS, len(names.NODES))
    rounds = kills.perform(group, planned)
    assert [one.good for one in rounds] == [True] * KILLS, f"seed {SEED}:\n{kills.table(rounds)}\n{rounds[-1].note}"


def test_what_is_missing_is_named_and_nothing_is_served(group: kills.ServedGroup) -> None:
    down: dict[str, Any] = {}
    seen = refusals.perform(group, while_down=lambda: down.update(site_status()))
    assert [one.fault for one in seen if one.served] == [], refusals.table(seen)
    late = [one.fault for one in seen if not one.named or (one.seconds > NAMED_AFTER and one.fault != "budget")]
    assert late == [] and {one.fault for one in seen} == {one.fault for one in refusals.TABLE}, refusals.table(seen)
    assert not down["serving"] and down["ranks"][0]["state"] == "down"
    assert down["ranks"][0]["cause"].startswith("stays down: failed "), down["ranks"][0]
