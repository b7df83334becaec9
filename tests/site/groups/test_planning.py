"""What playbooks/serve.yml does about a list: which groups end and start, each in the seat that the plan gave it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, profile
from sparkloom.judge.fleet.steps import Wave
from sparkloom.launch.groups import Placed, Running
from sparkloom.site import ansible
from sparkloom.site.groups import planning
from tests import inventories

ULTRA, GLM, OSS = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4", "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
QWEN = "radixark--qwen3.8-27b-nvfp4"
SPARKS = tuple(f"spark{number}" for number in range(1, 5))


BY = "anna@laptop, 2026-11-26 11:20 UTC"


def made(site: Path, runs: dict[str, Running], **more: Any) -> planning.Rollout:
    return planning.of_list(case.fleet(site, runs=runs), runs, more, "refuse")


def ran(placed: Placed, site: Path) -> Running:
    """As the cluster tells of a group that was started in its seat."""
    rendered = case.render(placed.profile, site, seat=placed, force=True)
    name = profile.load(placed.profile).name  # what a record has of it
    there = {"vf": placed.vf, "fraction": placed.fraction, "only": placed.only}
    return Running(placed.name, name, placed.nodes, **there, config_hash=rendered.digest)


def test_four_sparks_give_way_to_three_groups_at_once(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {GLM}\n  - {OSS}\n  - {{profile: {QWEN}, fraction: 0.42}}\n")
    runs = {ULTRA: Running(ULTRA, ULTRA, SPARKS, 0, only=True)}
    found = made(site, runs)
    assert found.waves == [Wave((ULTRA,), (GLM, OSS, QWEN), SPARKS)]
    assert found.said.splitlines()[0] == f"{ULTRA} on spark1, spark2, spark3, spark4 stops: it is not in the list"
    told = found.as_dict()
    assert [one["name"] for one in told["waves"][0]["start"]] == [GLM, OSS, QWEN]
    assert all(one["seat"]["name"] == one["name"] and one["label"] for one in told["groups"])


def test_what_runs_as_it_should_stays_and_one_more_joins_it(tmp_path: Path) -> None:
    three = f"serve:\n  - {GLM}\n  - {OSS}\n  - {{profile: {QWEN}, fraction: 0.42}}\n"
    site = inventories.serving(tmp_path, three)
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    again = made(site, runs)
    assert {one.state for one in again.members} == {"stays"} and again.waves == [Wave((), (GLM, OSS, QWEN), ())]
    more = inventories.serving(
        tmp_path, three + f"  - {{profile: {QWEN}, name: two, alias: two, fraction: 0.42}}\n", name="m"
    )
    (wave,) = made(more, runs).waves
    assert (wave.stop, wave.start[0], wave.idle) == ((), "two", ()), "beside the one that has its part of that Spark"


def test_a_profile_by_its_path_stays_like_any_other(tmp_path: Path) -> None:
    """Found on the rack: it was replaced by itself at each run, as a record has its name and the list its path."""
    mine = tmp_path / "mine.yml"
    mine.write_text(f"extends: {OSS}\n")
    site = inventories.serving(tmp_path, f"serve: [{{profile: {mine}, name: oss}}]\n")
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    assert [one.state for one in made(site, runs).members] == ["stays"]


def test_a_profile_that_was_edited_is_started_anew_and_nothing_else(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {GLM}\n  - {OSS}\n")
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    old = runs[OSS]
    runs[OSS] = replace(old, config_hash="of-before")
    found = made(site, runs)
    assert {one.name: one.state for one in found.members} == {GLM: "stays", OSS: planning.RENEWS}
    assert found.waves == [Wave((OSS,), (OSS, GLM), found.members[1].nodes)]


def test_what_no_record_tells_of_is_in_the_way(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {OSS}\n")
    found = made(site, {}, stray=("spark1",))
    assert found.waves == [Wave(("stray",), (OSS,), ("spark1",))]


TURNS = f"""\
serve:
  - {{profile: {OSS}, idle_minutes: 10, turns: t}}
  - {{profile: {QWEN}, name: chat, idle_minutes: 10, turns: t}}
"""


def told(found: planning.Rollout) -> dict[str, str]:
    """What is said of each group."""
    return {line.partition(" on ")[0]: line.partition("spark1 ")[2] for line in found.said.splitlines()}


def test_of_a_turn_each_is_proved_and_the_last_stays_awake(tmp_path: Path) -> None:
    found = made(inventories.serving(tmp_path, TURNS), {})
    first = ("spark1",)
    assert found.waves == [Wave((), (OSS,), first), Wave((), ("chat",), first, (OSS,))] and found.holds
    assert found.as_dict()["waves"][1]["sleep"] == [OSS]
    assert told(found)[OSS] == (
        "starts, and is put to sleep once it was proved, as chat starts in its place; a request wakes it"
    )
    assert told(found)["chat"] == "starts"


def test_who_sleeps_as_it_should_is_not_woken(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, TURNS)
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    runs[OSS] = replace(runs[OSS], awake=False, proved=runs[OSS].config_hash)
    again = made(site, runs)
    assert {one.state for one in again.members} == {"stays"} and not again.holds
    assert again.waves == [Wave((), (OSS, "chat"), ())]
    assert told(again) == {OSS: "stays as it is (asleep)", "chat": "stays as it is"}


def test_who_is_awake_sleeps_for_one_that_changed(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, TURNS)
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    runs[OSS] = replace(runs[OSS], awake=False, config_hash="of-before")
    found = made(site, runs)
    assert found.waves == [Wave((OSS,), (OSS, "chat"), ("spark1",), ("chat",))] and found.holds
    assert told(found)["chat"] == (
        f"stays as it is, and is put to sleep, as {OSS} starts in its place; a request wakes it"
    )


@pytest.mark.parametrize(
    ("text", "sleeper", "state"),
    [
        (TURNS, {"proved": "another"}, planning.UNPROVED),
        (TURNS, {"proved": "", "whole": False}, planning.LACKS),
        (f"serve:\n  - {OSS}\n  - {{profile: {QWEN}, name: chat}}\n", {}, planning.WAKES),
    ],
)
def test_who_sleeps_and_should_not_starts(text: str, sleeper: dict[str, Any], state: str, tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, text)
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    runs["chat"] = replace(runs["chat"], awake=False, **sleeper)
    assert {one.name: one.state for one in made(site, runs).members}["chat"] == state


def test_one_of_a_turn_goes_back_alone_while_the_others_sleep(tmp_path: Path) -> None:
    back = planning.only(made(inventories.serving(tmp_path, TURNS), {}), OSS)
    assert back.waves == [Wave((OSS,), (OSS,), ("spark1",), ("chat",))]


def test_on_demand_changes_nothing_that_is_rendered(tmp_path: Path) -> None:
    """So a group that runs goes on when its list begins to say after how long it may stop."""
    site = inventories.serving(tmp_path, f"serve:\n  - profile: {OSS}\n")
    was = case.render_group(OSS, site, force=True)
    said = site / "group_vars" / "all" / "cluster.yml"
    said.write_text(
        said.read_text().replace(f"- profile: {OSS}\n", f"- {{profile: {OSS}, idle_minutes: 1, turns: t}}\n")
    )
    now = case.render_group(OSS, site, force=True)
    assert now.objects
    assert (now.objects, now.digest) == (was.objects, was.digest)


def test_a_list_that_does_not_pack_is_refused_with_what_helps(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {ULTRA}\n  - {OSS}\n")
    with pytest.raises(InputError, match="what would help"):
        made(site, {})


def test_one_profile_is_one_group_and_all_else_is_in_its_way() -> None:
    cluster = inventory.load()
    found = planning.alone(GLM, cluster, {"other": ("spark3",)})
    assert found.waves == [Wave(("other",), (GLM,), SPARKS)]
    assert found.as_dict()["groups"] == [
        {
            "name": GLM, "label": GLM, "profile": GLM, "nodes": ["spark1", "spark2"], "state": "new", "alone": True,
            "seat": {}, "served": "served", "on_demand": False, "stopped": "",
        }
    ]  # fmt: skip
    assert planning.alone(GLM, cluster, {GLM: ("spark1",)}).waves == [Wave((), (GLM,), ())], "it is there"


def test_one_profile_that_was_stopped_stays_stopped() -> None:
    found = planning.alone(GLM, inventory.load(), {GLM: ("spark1",)}, {GLM: BY})
    assert found.said == f"{GLM} on spark1, spark2 stays stopped (by {BY}) until `sparkloom start {GLM}`"
    assert found.as_dict()["groups"][0]["stopped"] == BY


@pytest.mark.parametrize("now", [{}, {"config_hash": "of-before"}, {"nodes": ("spark4",)}])
def test_a_stopped_group_of_a_list_stays_stopped_whatever_has_changed(now: dict[str, Any], tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {OSS}\n  - {{profile: {QWEN}, name: chat}}\n")
    runs = {one.name: ran(one, site) for one in made(site, {}).members}
    runs["chat"] = replace(runs["chat"], awake=False, stopped=BY, **now)
    found = made(site, runs)
    assert [one.stopped for one in found.members] == ["", BY]
    assert f"stays stopped (by {BY}) until `sparkloom start chat`" in found.said


def test_a_seat_renders_what_the_plan_renders(tmp_path: Path) -> None:
    """Through Ansible travels plain data, not the plan."""
    site = inventories.serving(tmp_path, f"serve:\n  - {{profile: {QWEN}, name: chat, alias: qwen, fraction: 0.42}}\n")
    (member,) = made(site, {}).members
    by_plan = case.render_group("chat", site, force=True)
    by_seat = case.render(QWEN, site, seat=Placed.of(ansible.plain(planning.as_dict(member)["seat"])), force=True)
    assert by_seat.objects == by_plan.objects and by_seat.digest == by_plan.digest


def test_another_profile_for_one_group_keeps_its_name() -> None:
    listed = [GLM, {"profile": OSS, "name": "chat", "alias": "oss"}]
    assert planning.entry(listed, "chat", QWEN) == [GLM, {"profile": QWEN, "name": "chat", "alias": "oss"}]
    assert planning.entry(listed, GLM, QWEN)[0] == {"profile": QWEN, "name": GLM}
    with pytest.raises(InputError, match="there are"):
        planning.entry(listed, "nobody", QWEN)


def test_the_record_is_what_the_next_plan_reads(tmp_path: Path) -> None:
    from sparkloom.launch import fleet_record

    one = Running("chat", QWEN, ("spark4",), fraction=0.42, config_hash="digest")
    fleet_record.write(tmp_path / "fleet.json", [one])
    assert fleet_record.read(tmp_path / "fleet.json") == {"chat": Running("chat", QWEN, ("spark4",), fraction=0.42)}


def test_one_profile_says_in_plain_words_what_is_in_its_way() -> None:
    """With a file and a place before it, as of unusable input, on the code of an hour."""
    cluster = inventory.load()
    there = planning.alone(GLM, cluster, {"other": ("spark3",)})
    assert planning.in_the_way(there, GLM).startswith("other is served here and holds the GPUs and the rails. To serve")
    assert planning.in_the_way(planning.alone(GLM, cluster, {}), GLM) == ""
