"""Random lists of shipped profiles on one to eight Sparks: packed within every limit, or refused for a true reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.judge import fleet
from sparkloom.judge.fleet import FleetPlan, needs
from sparkloom.judge.fleet.plan import pose
from sparkloom.launch import fleet_record
from sparkloom.launch.groups import Running
from tests.judge.fleet import brute
from tests.judge.fleet.sites import judged_once, serves, site
from tests.later import thrown

Items = list[dict[str, Any]]
RANDOM = settings(max_examples=thrown(200))
# On one Spark, on two, three and four; of three engines.
PROFILES = (
    "radixark--qwen3.8-27b-nvfp4",
    "openai--gpt-oss-120b",
    "chankhavu--nemotron-cascade-2-30b-a3b-nvfp4",
    "radixark--qwen3.8-27b-nvfp4--2node",
    "nvidia--glm-5.3-flash-nvfp4",
    "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node",
    "nvidia--minimax-m2.5-nvfp4--pp3",
    "google--gemma-4-31b-it",
    "nvidia--nemotron-3-ultra-550b-a55b-nvfp4",
)
ALIKE = (PROFILES[:3], PROFILES[3:5])  # on as many Sparks, so that they may take turns
SMALL = (PROFILES[0], PROFILES[2], PROFILES[3])  # what has room for others beside it


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "one", judged_once)


@st.composite
def items(draw: st.DrawFn, name: str, sparks: int) -> dict[str, Any]:
    small = draw(st.integers(0, 3)) < 3
    item: dict[str, Any] = {"profile": draw(st.sampled_from(SMALL if small else PROFILES)), "name": name, "alias": name}
    if share := draw(st.sampled_from([None, 0.3, 0.35, 0.42, 0.42, 0.65])):
        item["fraction"] = share
    if draw(st.integers(0, 19)) == 19:
        item["nodes"] = [f"spark{draw(st.integers(1, sparks))}"]
    return item


@st.composite
def lists(draw: st.DrawFn, most: int = 7) -> tuple[Cluster, Items]:
    sparks = draw(st.integers(1, 8))
    cluster = site(sparks, vfs_per_rail=draw(st.sampled_from([2, 4])))
    return cluster, draw(turned([draw(items(letter, sparks)) for letter in "abcdefg"[: draw(st.integers(0, most))]]))


@st.composite
def turned(draw: st.DrawFn, listed: Items) -> Items:
    """Sometimes two or three of them take turns."""
    if draw(st.booleans()):
        return listed
    mates, profiles = draw(st.permutations(listed))[: draw(st.integers(1, 3))], draw(st.sampled_from(ALIKE))
    for item in mates:
        item |= {"idle_minutes": 5, "turns": "t", "profile": draw(st.sampled_from(profiles))}
        item.pop("nodes", None)
        item.pop("fraction", None)
        item |= {"fraction": mates[0]["fraction"]} if "fraction" in mates[0] else {}
    return listed


def planned(cluster: Cluster, wanted: Items, running: dict[str, Running] | None = None) -> FleetPlan | None:
    """None where the list itself is unusable: a model that cannot be cut so."""
    try:
        return fleet.plan(serves(cluster, *wanted), cluster, running)
    except InputError as error:
        assert {problem.rule for problem in error.problems} <= {"no-such-split", "turns-differ"}
        return None


@RANDOM
@given(lists())
def test_packed_within_every_limit_or_refused_with_reason(drawn: tuple[Cluster, Items]) -> None:
    cluster, wanted = drawn
    note("\n".join(str(item) for item in wanted))
    plan = planned(cluster, wanted)
    if plan is None:
        return
    if plan.fits is not False:
        event("packed")
        within_limits(cluster, plan)
        return
    event(f"refused, advice {len(plan.advice)}")
    asked = needs.of(serves(cluster, *wanted), cluster)
    problem = pose(asked, cluster, needs.platforms(cluster))
    if problem is None:
        few = [need.count > len(cluster.nodes) or (need.count > 1 and not cluster.fabric.rails) for need in asked]
        assert any(few)
    else:
        assert not brute.possible(problem), "a packing exists"
    for text in plan.advice:
        for changed_cluster, changed in taken(text, cluster, wanted):
            after = planned(changed_cluster, changed)
            assert after is not None and after.fits is not False, text


def within_limits(cluster: Cluster, plan: FleetPlan) -> None:
    """Read off what is printed, not off the search's own data; whichever group of a turn is awake."""
    told = plan.as_dict()
    groups = told["groups"]
    asleep = {group["turns"]: [one for one in groups if one["turns"] == group["turns"]] for group in groups}
    asleep.pop(None, None)
    for mates in asleep.values():
        assert len({(*mate["nodes"], mate["vf"], mate["fraction"], str(mate["addresses"])) for mate in mates}) == 1
    for awake in product(*asleep.values()):
        together(cluster, plan, [one for one in groups if one["turns"] is None or one in awake])
    for names in ("engine_key",):
        assert len({group["secrets"][names] for group in groups}) == len(groups)
    for unique in ("label", "service", "alias"):
        assert len({group[unique] for group in groups}) == len(groups)
    assert len({group["records"]["served"] for group in groups}) == len(groups)


def together(cluster: Cluster, plan: FleetPlan, groups: Items) -> None:
    """What is awake at once."""
    told, spark = plan.as_dict(), next(iter(plan.sparks.values()))
    for node in told["nodes"]:
        here = [group for group in groups if node["name"] in group["nodes"]]
        if len(here) > 1:
            assert all(group["fraction"] is not None for group in here)
            assert sum(group["fraction"] for group in here) * spark.usable_gib <= 121.6 - 8 - 8 + 0.01
        functions = [group["vf"] for group in here if group["vf"] is not None]
        assert len(set(functions)) == len(functions) and cluster.fabric.check_vf not in functions
    for group in groups:
        assert len(set(group["nodes"])) == group["parallel"]["nodes"] and group["fits"] is not False
        memory = group["memory"]
        parts = sum(size for name, size in memory.items() if name != "takes_gib")
        assert parts <= memory["takes_gib"] + 0.05
    ends = [address for group in groups for rails in group["addresses"].values() for address in rails.values()]
    assert len(set(ends)) == len(ends)


def taken(text: str, cluster: Cluster, wanted: Items) -> Iterator[tuple[Cluster, Items]]:
    """What a piece of advice says, done."""

    def changed(names: str, **values: Any) -> Items:
        return [{**item, **values} if item["name"] in names.split(", ") else item for item in wanted]

    if found := re.fullmatch(r"([\w, ]+): fraction \S+ -> (\S+)", text):
        yield cluster, changed(found[1], fraction=float(found[2]))
    elif found := re.fullmatch(r"([\w, ]+): nodes: (\d) (?:instead|in place) of .*", text):
        yield cluster, changed(found[1], nodes=int(found[2]))
    elif found := re.fullmatch(r"one of them awake at a time: turns: (\w+) and idle_minutes: for (.*)", text):
        yield cluster, changed(found[2], turns=found[1], idle_minutes=5)
    elif found := re.fullmatch(r"one profile less: without (.*)", text):
        for name in found[1].split(" or "):
            yield cluster, [item for item in wanted if item["name"] != name]
    elif found := re.fullmatch(r"fewer profiles: (.*) fit together", text):
        yield cluster, [item for item in wanted if item["name"] in found[1].split(", ")]
    elif found := re.match(r"fabric.yml: vfs_per_rail: (\d+),", text):
        more = cluster.fabric.model_copy(update={"vfs_per_rail": int(found[1])})
        yield cluster.model_copy(update={"fabric": more}), wanted
    else:
        assert text.startswith(("smaller fractions: ", "a shared Spark: ")), text
        shares = re.findall(r"(\w) (?:\S+ -> |fraction: )([\d.]+)", text)
        assert shares
        given = {name: float(share) for name, share in shares}
        yield (
            cluster,
            [{**item, **({"fraction": given[item["name"]]} if item["name"] in given else {})} for item in wanted],
        )


@st.composite
def steps(draw: st.DrawFn) -> tuple[Cluster, Items, Items]:
    """A list, and the same with one entry added, taken out or changed; an added one often wants Sparks alone."""
    cluster, wanted = draw(lists(most=5))
    if wanted and draw(st.booleans()):
        number = draw(st.integers(0, len(wanted) - 1))
        other = [draw(items(wanted[number]["name"], len(cluster.nodes)))] if draw(st.booleans()) else []
        return cluster, wanted, [*wanted[:number], *other, *wanted[number + 1 :]]
    added = draw(items("z", len(cluster.nodes)))
    if draw(st.booleans()):
        added.pop("fraction", None)
    return cluster, wanted, [*wanted, added]


@RANDOM
@given(steps())
def test_a_step_moves_no_other_group_that_need_not_move(drawn: tuple[Cluster, Items, Items]) -> None:
    cluster, before, after = drawn
    note("\n".join(["before:", *map(str, before), "after:", *map(str, after)]))
    first = planned(cluster, before)
    assume(first is not None and first.fits is not False)
    assert first
    running = {one["name"]: fleet_record._running(one) for one in first.as_dict()["groups"]}
    second = planned(cluster, after, running)
    assume(second is not None and second.fits is not False)
    assert second
    within_limits(cluster, second)
    now = {one["name"]: one for one in second.as_dict()["groups"]}
    unchanged = [item["name"] for item in after if item in before]
    asked = needs.of(serves(cluster, *after), cluster)
    problem = pose(asked, cluster, needs.platforms(cluster), running)
    assert problem
    kept = {name: problem.held[name].seat for name in unchanged}
    if brute.possible(problem, kept):
        event("all stay")
        assert {now[name]["state"] for name in unchanged} <= {"stays"}
        for name in unchanged:  # nothing of it has another name either
            assert now[name]["secrets"]["engine_key"] == running[name].engine_key
            assert tuple(now[name]["nodes"]) == running[name].nodes and now[name]["vf"] == running[name].vf
    else:
        event("some must move")
        assert "moves" in {now[name]["state"] for name in unchanged}
