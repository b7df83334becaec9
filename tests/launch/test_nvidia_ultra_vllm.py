"""NVIDIA's published four-Spark launch of Nemotron 3 Ultra: each rank runs it, word for word after normalisation.

The release's own reading makes both sides alike: order, `=`, dashes, dotted keys and short names mean nothing; every
value of every flag does. What is not compared is named here, and follows from the inventory or the house.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.inputs.catalogs import argv as command_line
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.launch import engines
from tests.launch.test_profiles import WAITS
from tests.places import DATA

NAME = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4--vllm"
RECIPE: dict[str, Any] = next(
    recipe for recipe in yaml.safe_load((DATA / "recipes.yml").read_text()) if recipe["profile"] == NAME
)
GUIDE_PORT, OUR_PORT = "29501", "20000"  # of the rendezvous: the guide's own variable, and ours for every launch


def read(catalog: Catalog, words: list[str]) -> dict[str, list[object]]:
    """Flag by its chief name -> its typed values; fails on a word that the release would not take."""
    normalised, problems = catalog.dialect.normalise(words)
    assert not problems, problems
    found: dict[str, list[object]] = {}
    for use in command_line._scan(catalog, normalised):
        if isinstance(use, command_line.Stray):
            assert use.seat and not use.problems, use  # the model, as a word of its own
            found["model"] = [*found.get("model", []), *use.words]
            continue
        off = use.spelled in use.flag.off
        typed = [use.flag.convert(value, catalog.dialect) for value in use.values]
        assert use.flag.name not in found, f"{use.flag.name} stands twice"
        found[use.flag.name] = ["off"] if off else typed
    return found


@pytest.mark.parametrize("release", ["0.32.0", "0.33.0"])
@pytest.mark.parametrize("rank", range(4))
def test_each_rank_runs_the_guides_command(release: str, rank: int) -> None:
    launch = case.judge(NAME, release=release).launch
    catalog = engines.catalog("vllm", release)
    head = launch.topology.address(launch.topology.head)
    filled = RECIPE["posted"].replace("$NODE_RANK", str(rank)).replace("$HEAD_IP", head)
    filled = filled.replace("$MASTER_PORT", GUIDE_PORT).replace("$RUN_HEADLESS", "--headless" if rank else "")
    published = read(catalog, [RECIPE["program"][2], *filled.split()])
    ours = read(catalog, list(launch.ranks[rank].argv[2:]))
    assert published.pop("--master-port") == [int(GUIDE_PORT)] and ours.pop("--master-port") == [int(OUR_PORT)]
    house = {*RECIPE["house"], *WAITS}
    assert {name: values for name, values in ours.items() if name not in house} == published
    assert {name: str(ours[name][0]) for name in RECIPE["house"]} == RECIPE["house"]
    assert list(launch.ranks[rank].argv[:3]) == RECIPE["program"]


def test_every_variable_of_the_guide_is_set_or_follows_from_the_inventory() -> None:
    """The interfaces that a person sets by hand there; MPI's and UCX's have no part in this launch."""
    for rank in case.judge(NAME).launch.ranks:
        env = {variable.name: variable.value for variable in rank.env}
        assert env.items() >= RECIPE["env"].items()
        assert env["NCCL_IB_HCA"].count(",") == 1, "both halves of the port"
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
            assert env[name].lstrip("=") == "rail0" or env[name], name
        assert env.get("NCCL_IB_DISABLE", "0") == "0"


def test_a_changed_word_is_seen() -> None:
    """The comparison is not blind: one value of a list, one key of a JSON text, one switch."""
    catalog = engines.catalog("vllm", "0.32.0")
    words = ["m", "--cudagraph-capture-sizes", "5", "10", "-cc.mode", "0", "--no-scheduler-reserve-full-isl"]
    base = read(catalog, words)
    for changed in (
        [*words[:3], "11", *words[4:]],
        [*words[:5], "1", words[6]],
        [*words[:6], "--scheduler-reserve-full-isl"],
    ):
        assert read(catalog, changed) != base
