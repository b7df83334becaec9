"""The first model of a site is a safe one: measured, on the Sparks that there are, by the one verdict."""

from __future__ import annotations

import pytest

from sparkloom import case
from sparkloom.inputs import inventory, serving
from sparkloom.judge import profile_status, start

EXAMPLE = inventory.load()
SUPER, ULTRA = "nvidia--nemotron-3-super-120b-a12b-nvfp4--ep4", "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def test_the_example_begins_with_super_and_says_what_ultra_risks() -> None:
    (wanted,) = serving.load(None, EXAMPLE).entries
    assert wanted.profile == SUPER and case.suited(SUPER, EXAMPLE) == SUPER
    assert case.plan(SUPER)["start"]["verdict"] in start.GOOD
    text = (inventory.DEFAULT_INVENTORY / "group_vars/all/cluster.yml").read_text()
    risk, _, line = text.partition(f"# profile: {ULTRA}\n")[0].rpartition("# Larger")
    assert risk and "7.3 GiB" in line and "below 8" in line
    (floor,) = [one for one in case.judge(ULTRA).findings if one.rule == "near-guard-floor"]
    assert "7.3 GiB" in floor.message and "below 8" in floor.message


@pytest.mark.parametrize("sparks", [1, 2, 3])
def test_fewer_sparks_get_a_measured_profile_that_fits(sparks: int) -> None:
    site = EXAMPLE.model_copy(update={"nodes": EXAMPLE.nodes[:sparks]})
    found = case.suited(SUPER, site)
    (row,) = [one for one in profile_status.listing() if one["name"] == found]
    assert row["status"] == "measured" and row["nodes"] <= sparks
    assert case.plan(found, site)["start"]["verdict"] in start.GOOD


def test_one_spark_of_several_without_cables_is_one() -> None:
    fabric = EXAMPLE.fabric.model_copy(update={"rails": []})
    found = case.suited(SUPER, EXAMPLE.model_copy(update={"fabric": fabric}))
    assert case.judge(found, EXAMPLE).launch.profile.profile.launch.parallel.nodes == 1
