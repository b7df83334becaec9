"""What is a group's own: told apart from every other's, and as it always was where there is one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sparkloom import case
from sparkloom.inputs import addressing, group_name, profile
from sparkloom.launch import groups
from sparkloom.launch.groups import Placed, Running
from sparkloom.onnode.now.labels import ONLY_KEY, ONLY_SERVED
from sparkloom.render.manifests import names
from tests.judge.fleet.sites import site

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def placed(name: str, *nodes: str, vf: int | None = None) -> Placed:
    return Placed(name, name, nodes, vf, name, 30000)


@pytest.mark.parametrize("name", profile.names())
def test_a_site_with_one_profile_has_the_names_that_it_always_had(name: str) -> None:
    """Against what is rendered: an upgrade renames nothing that runs."""
    rendered = case.render(name, force=True)
    launch = rendered.case.launch
    nodes = tuple(rank.place.node.name for rank in launch.ranks)
    vf = 0 if len(nodes) > 1 else None
    (group,) = groups.allocate([Placed(name, name, nodes, vf, name, launch.port)])
    kinds = {(item["kind"], item["metadata"]["name"]) for item in rendered.objects}
    assert {("Service", group.label), ("ConfigMap", group.as_dict(rendered.case.cluster)["records"]["record"])} <= kinds
    assert {("StatefulSet", f"{group.label}-rank{rank.index}") for rank in launch.ranks} <= kinds
    assert group.label == names.group(name)
    assert group.engine_key == ONLY_KEY and group.served == ONLY_SERVED
    assert group.port == launch.port
    ends = {rank.place.node.name: {end.rail: end.cidr for end in rank.place.endpoints} for rank in launch.ranks}
    assert group.addresses(rendered.case.cluster) == (ends if len(nodes) > 1 else {})


def test_the_first_keeps_its_names_when_others_come_and_when_it_is_listed_last() -> None:
    (alone,) = groups.allocate([placed("a", "spark1")])
    running = {"a": Running("a", "a", ("spark1",), only=alone.only)}
    after = {g.name: g for g in groups.allocate([placed("b", "spark2"), placed("a", "spark1")], running)}
    assert after["a"] == alone
    assert after["b"].engine_key == "b-engine-key" and after["b"].served == "b-served"


def test_who_came_second_keeps_its_names_when_the_first_has_gone() -> None:
    both = groups.allocate([placed("a", "spark1"), placed("b", "spark2")])
    running = {g.name: Running(g.name, g.name, g.nodes, only=g.only) for g in both}
    left = groups.allocate([placed("b", "spark2")], running)
    assert left == [both[1]]
    third = groups.allocate([placed("c", "spark1"), placed("b", "spark2")], running)
    assert third[1] == both[1] and third[0].engine_key == "engine-own-key"


def test_groups_that_share_sparks_have_addresses_of_their_own_on_every_rail() -> None:
    cluster = site(2, vfs_per_rail=4)
    pair = ("spark1", "spark2")
    assert addressing.functions_of_pods(cluster) == (0, 2, 3)
    made = groups.allocate([placed(name, *pair, vf=vf) for name, vf in zip("abc", (0, 2, 3), strict=True)])
    ends = [address for group in made for rails in group.addresses(cluster).values() for address in rails.values()]
    assert len(set(ends)) == len(ends) == 3 * 2 * 2
    assert made[1].addresses(cluster)["spark1"] == {"a": "192.168.100.43/24", "b": "192.168.101.43/24"}


def test_a_function_without_an_address_in_the_subnet_is_not_given() -> None:
    small = [
        rail.model_copy(update={"subnet": f"192.168.{number}.0/26"}) for number, rail in enumerate(site(2).fabric.rails)
    ]
    assert addressing.functions_of_pods(site(2, vfs_per_rail=8, rails=small)) == (0, 2, 3)


def test_a_whole_port_is_one_group_s() -> None:
    assert addressing.functions_of_pods(site(2, vfs_per_rail=4, attach="pf")) == (0,)
    assert addressing.functions_of_pods(site(1)) == ()


def test_the_functions_of_a_group_are_rendered_from_the_site_that_it_sees() -> None:
    cluster = site(2, vfs_per_rail=4)
    assert groups.seated(cluster, 0) is cluster
    assert groups.seated(cluster, 2).fabric.serving_vf == 2


@pytest.mark.parametrize("suffix", group_name.SUFFIXES)
def test_names_that_would_meet_are_known(suffix: str) -> None:
    assert list(group_name.meetings(["a", "b", f"a{suffix}"])) == [(2, 0, f"a{suffix}")]
    assert not list(group_name.meetings(["a", "b", "a-b"]))


def test_every_suffix_of_an_object_is_listed() -> None:
    """Read off what is rendered: a new kind of object must not make two groups meet."""
    rendered = case.render(ULTRA)
    own = [item["metadata"]["name"] for item in rendered.objects if ULTRA in item["metadata"]["name"]]
    seen = {name.removeprefix(ULTRA).rstrip("0123456789") for name in own} - {""}
    assert seen <= set(group_name.SUFFIXES)
    assert all(len(one) >= len(other) for one, other in pairwise(sorted(own, key=len, reverse=True)))
