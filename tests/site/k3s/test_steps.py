"""The role's steps on the controller, over plain data."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from sparkloom.render.k3s import machines, paths
from sparkloom.render.k3s.options import options
from sparkloom.site import ansible
from sparkloom.site.k3s import steps
from sparkloom.site.tasks import k3s as tasks
from tests.k3s_sites import REPO, chosen, site
from tests.plugins.loading import context

SITE = site(["spark1"], nodes=2)
SECRETS = {"tokens": {"server": "K10s", "agent": "K10a", "agent_passphrase": "P"}}


VERSIONS = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/versions.yml").read_text())
DEFAULTS = yaml.safe_load((REPO / "roles/k3s/defaults/main.yml").read_text())
PLAN = machines.plan(SITE, chosen())


def decided(states: dict[str, Any], secrets: dict[str, Any]) -> dict[str, Any]:
    rows, decision = steps.decide(options(VERSIONS | DEFAULTS), PLAN, states, steps.hashes(secrets))
    return ansible.verdict(rows, "") | decision


def test_bare_machines_start_the_first_alone_and_the_rest_together(state: dict[str, Any]) -> None:
    bare = {"tokens": {"server": "", "agent": "", "agent_passphrase": ""}}
    said = decided({"spark1": state, "spark2": state}, bare)
    assert said["first_starts"] and said["together"] == ["spark2"] and said["sequence"] == []
    assert [item["name"] for item in said["hosts"]["spark2"]["missing"]] == [
        "k3s-arm64",
        "cni-plugins-linux-arm64-v1.9.1.tgz",
    ]


def test_a_limited_run_joins_a_cluster_that_is_there_and_no_other(state: dict[str, Any]) -> None:
    only = {"spark2": state}
    assert decided(only, SECRETS)["together"] == ["spark2"]
    refused = decided(only, {"tokens": {}})
    assert refused["failed"] and "run without --limit" in refused["msg"]


def marked(text: str, **more: str) -> dict[str, Any]:
    marks = {"token": machines.digest(text) if text else "", "agent_token": machines.digest("P"), **more}
    return {"marks": marks, "opened": []}


FIRST = marked("own", server=machines.digest("K10s"), agent=machines.digest("K10a"))


def drift(state: dict[str, Any], marks: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    asked = {"spark1": state, "spark2": state}
    _, found = steps.dry(options(VERSIONS | DEFAULTS), PLAN, asked, marks)
    return {host: [entry["what"] for entry in entries] for host, entries in found.items()}


def test_a_dry_look_compares_tokens_by_their_hashes(state: dict[str, Any]) -> None:
    """A token never leaves its machine for a look."""
    same, other = marked("K10a"), marked("of another cluster")
    assert paths.TOKEN not in drift(state, {"spark1": FIRST, "spark2": same})["spark2"]
    assert paths.TOKEN in drift(state, {"spark1": FIRST, "spark2": other})["spark2"]
    assert paths.TOKEN in drift(state, {"spark1": FIRST, "spark2": marked("")})["spark2"]
    assert paths.TOKEN not in drift(state, {"spark1": {}, "spark2": other})["spark2"], "nobody knows what it should be"


def test_a_token_that_others_can_read_is_named(state: dict[str, Any]) -> None:
    asked = {"spark1": state, "spark2": state}
    marks = {"spark1": FIRST | {"opened": [paths.TOKEN]}, "spark2": marked("K10a")}
    _, found = steps.dry(options(VERSIONS | DEFAULTS), PLAN, asked, marks)
    assert {"what": paths.TOKEN, "found": "others can read it", "expected": "permissions 0600"} in found["spark1"]


def test_a_dry_look_names_what_is_missing_and_why_k3s_would_start(state: dict[str, Any]) -> None:
    _, found = steps.dry(options(VERSIONS | DEFAULTS), PLAN, {"spark1": state, "spark2": state}, {"spark1": FIRST})
    decision = decided({"spark1": state, "spark2": state}, SECRETS)["hosts"]["spark2"]
    told = [(entry["what"], entry["found"]) for entry in found["spark2"]]
    assert ("k3s-arm64", "not there, or not as it was installed") in told
    assert [(f"unit {PLAN['hosts']['spark2']['service']}", why) for why in decision["reasons"]] == [
        (what, why) for what, why in told if what.startswith("unit ")
    ]


def joining(secrets: dict[str, Any]) -> Any:
    return tasks.token_files(context({"kept": secrets}), PLAN, "kept")["hosts"]


def test_tokens_reach_only_the_step_that_is_never_shown(state: dict[str, Any]) -> None:
    assert "K10" not in json.dumps(decided({"spark1": state, "spark2": state}, SECRETS))
    assert joining(SECRETS) == {
        "spark1": {},
        "spark2": {"/etc/rancher/k3s/sparkloom-token": "K10a"},
    }
    none = {"tokens": {"agent_passphrase": ""}}
    assert joining(none) == {"spark1": {}, "spark2": {}}


def test_the_bare_machines_are_those_of_their_inventory() -> None:
    from testbed.beds.bare import machines

    hosts = yaml.safe_load((REPO / "inventories/bare/hosts.yml").read_text())["all"]["children"]
    listed = hosts["sparks"]["hosts"] | hosts["k3s_servers"]["hosts"]
    made = {m.name: {"ansible_host": m.container, "management_address": m.address} for m in machines.machines(2)}
    assert {name: {key: host[key] for key in made[name]} for name, host in listed.items()} == made


def test_no_inventory_pins_another_k3s() -> None:
    pins = [
        {key: value for key, value in yaml.safe_load(path.read_text()).items() if key.startswith("k3s_")}
        for path in sorted(Path(REPO / "inventories").glob("*/group_vars/all/versions.yml"))
        if path.parts[-4] != "bare"  # pins the folder that it installs from
    ]
    assert len(pins) >= 3 and all(pin == pins[0] for pin in pins)


def as_it_runs(state: dict[str, Any], host: str) -> dict[str, Any]:
    """K3s runs here with all that is planned."""
    wanted, made = PLAN["hosts"][host], deepcopy(state)
    made["units"][wanted["service"]] = dict.fromkeys(("exists", "ours", "active", "enabled"), True)
    items = machines.artifacts(chosen(), "aarch64")
    made["programs"] = {item["name"]: {"sha256": item["sha256"], "intact": True} for item in items}
    token = {paths.TOKEN: machines.digest("K10a")} if not wanted["first"] else {}
    made["stamp"] = {**wanted["expected"], paths.BINARY: chosen().sha256["arm64"], **token}
    return made


def test_an_agent_that_run_1_left_broken_stops_run_2_and_run_3_too(state: dict[str, Any]) -> None:
    """Its unit is active and was started with all that is planned: run 2 went on to the next and broke that too."""
    states = {host: as_it_runs(state, host) for host in PLAN["hosts"]}
    well = decided(states, SECRETS)
    assert well["sequence"] == [] and well["together"] == [] and not well["first_starts"]
    states["spark2"]["waits"] = "a fresh sign of life of its kubelet"
    (step,) = decided(states, SECRETS)["sequence"]
    assert step["host"] == "spark2" and step["as_planned"] and "still waiting for a fresh" in step["reasons"][0]
    states["spark2"]["stamp"][paths.CONFIG] = "other"
    (step,) = decided(states, SECRETS)["sequence"]
    assert not step["as_planned"], "it is restarted at once"
