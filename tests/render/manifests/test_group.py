"""One group of a fleet as manifests: its own names, Sparks and functions; the same as ever where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom import case as cases
from sparkloom.base.errors import InputError
from sparkloom.render import manifests, pack
from sparkloom.render.manifests import names, supervision
from tests import golden_files, inventories
from tests.render.manifests import case
from tests.render.manifests.test_golden import REPRESENTATIVE

QWEN = "radixark--qwen3.8-27b-nvfp4"
FLEET = f"""\
serve:
  - profile: {QWEN}--2node
    name: pair
    alias: qwen-large
    fraction: 0.4
  - profile: {QWEN}--2node
    name: twin
    alias: qwen-other
    fraction: 0.4
    nodes: [spark2, spark1]
  - profile: {QWEN}
    name: chat
    alias: qwen
    fraction: 0.42
  - openai--gpt-oss-120b
"""
MORE = ("vfs_per_rail: 2", "vfs_per_rail: 4")
GROUPS = ("pair", "twin", "chat", "openai--gpt-oss-120b")


@pytest.fixture(autouse=True)
def short_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "program", lambda name: pack.Program(name, "stamp", f"# onnode/{name}\n".encode()))
    monkeypatch.setattr(supervision, "patterns", lambda engine: f"# of the rules for {engine}\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return inventories.serving(tmp_path, FLEET, fabric=MORE)


def objects(site: Path, group: str) -> list[dict[str, Any]]:
    return cases.render_group(group, site, force=True).objects


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_a_site_with_one_profile_is_rendered_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    """By `profile:` and by a list of one: no upgrade restarts what runs."""
    ever = manifests.to_yaml(case.build(name))
    for number, text in enumerate((f"profile: {name}\n", f"serve: [{name}]\n")):
        site = inventories.serving(tmp_path / str(number), text, name="gb10")
        assert manifests.to_yaml(objects(site, name)) == ever


@pytest.mark.parametrize("group", ["pair", "twin", "chat"])
def test_golden_group(group: str, site: Path) -> None:
    golden_files.check(f"fleet-{group}", "group.yaml", manifests.to_yaml(objects(site, group)))


def test_groups_share_only_what_is_the_site_s(site: Path) -> None:
    seen: dict[tuple[str, str], str] = {}
    shared = set()
    for group in GROUPS:
        for item in objects(site, group):
            key = item["kind"], item["metadata"]["name"]
            if key in seen:
                shared.add(key)
            seen[key] = group
    assert {kind for kind, _ in shared} <= {"Namespace", "PriorityClass", "NetworkAttachmentDefinition"}
    assert ("Namespace", "sparkloom") in shared


def test_each_group_s_policies_and_services_pick_its_own_pods_only(site: Path) -> None:
    labels = set()
    for group in GROUPS:
        made = objects(site, group)
        picked = {pod["metadata"]["labels"][names.PROFILE] for pod in case.pods(made)}
        assert len(picked) == 1
        labels |= picked
        for policy in case.of_kind(made, "NetworkPolicy"):
            assert {policy["spec"]["podSelector"]["matchLabels"][names.PROFILE]} == picked
    assert len(labels) == len(GROUPS)


def test_two_groups_on_the_same_sparks_have_functions_addresses_and_secrets_of_their_own(site: Path) -> None:
    networks, secrets = {}, {}
    for group in ("pair", "twin"):
        pods = case.pods(objects(site, group))
        networks[group] = {pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] for pod in pods}
        secrets[group] = {v["secret"]["secretName"] for pod in pods for v in pod["spec"]["volumes"] if "secret" in v}
    assert not networks["pair"] & networks["twin"]
    assert all("rail-a-vf2" in told for told in networks["pair"]) and all("vf0" in told for told in networks["twin"])
    assert not secrets["pair"] & secrets["twin"]
    assert {"engine-own-key", "pair-group"} <= secrets["pair"]


def test_the_engine_is_told_its_share_and_its_alias(site: Path) -> None:
    launch = cases.render_group("chat", site, force=True).case.launch
    argv = launch.ranks[0].argv
    assert argv[argv.index("--served-model-name") + 1] == "qwen" and argv.count("--served-model-name") == 1
    assert argv.count("--mem-fraction-static") == 1 and "--max-total-tokens" in argv
    told = next(setting for setting in launch.settings if setting.name == "mem_fraction_static")
    assert told.origin.kind == "fleet" and told.origin.where.endswith("cluster.yml:16:5")


def test_rank_0_is_where_the_list_says(site: Path) -> None:
    ranks = cases.render_group("twin", site, force=True).case.launch.ranks
    assert [rank.place.node.name for rank in ranks] == ["spark2", "spark1"]


def test_a_group_that_is_not_in_the_list_is_refused_with_those_that_are(site: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'pair'"):
        cases.render_group("piar", site)
