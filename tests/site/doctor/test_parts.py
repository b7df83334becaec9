"""Nothing that a role keeps is forgotten: a file or a module that the doctor does not know is decided on here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.site.doctor import asking, parts, roles, verdict
from sparkloom.site.doctor.parts import Part

# Left out on purpose.
ONLY_WHEN_CHANGING = {
    "preflight": {"groups"},  # whether the list packs, the doctor says of the site
    "gpu_runtime": {"install"},  # that it would be included is what is told
    "roce_fabric": {"proof", "strangers", "undo"},  # who is let in is part of `probe`
    "k3s": {"images", "import", "install", "undo"},  # what is missing is told by the plan
    "multus": {"undo", "undo_programs"},
    "model_serving": {"main", "ready", "release", "wave", "waves"},
    "gateway": {"prove"},
}
ONLY_AN_ORDER = {"main", "peers", "readback"}  # of a role whose other files are asked one by one
OURS = {"sparkloom", "sparkloom_node"}
NEITHER_KEPT_NOR_JUDGED = {
    "ansible.builtin.assert", "ansible.builtin.debug", "cluster.networks", "k3s.decide", "k3s.plan", "k3s.renew_access",
    "k3s.token_files", "k3s_secrets", "k3s_start", "site.read",
}  # fmt: skip


@cache
def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def walked(part: Part) -> Iterator[tuple[Part, roles.Task]]:
    """With what its tasks go on with, as the doctor follows them."""
    for task in roles.tasks(part.role, part.file, load):
        yield part, task
        if part in parts.OF_THE_CLUSTER and (file := roles.included(task)) and "{{" not in file:
            yield from walked(Part(part.role, file))


def asked() -> set[Part]:
    known = {
        "__node_base_site": {"site": {"expect_gb10": True, "kubernetes": {"provider": "k3s"}}},
        "__roce_fabric_plan": {"rails": ["a"]},
    }
    hosts = [{"__k3s_plan": {"hosts": {"spark1": {"first": first}}}} for first in (True, False)]
    nodes = {part for host in hosts for part in parts.of_a_node("spark1", known | host, spark=True)}
    return {*nodes, *(part for part, _ in parts.PLANS), *parts.OF_THE_NODES, *parts.OF_THE_CLUSTER}


ASKED = sorted({found for part in asked() for found, _ in walked(part)} | asked())
BY_DEFAULT = load(roles.ROLES / "doctor" / "defaults" / "main.yml")["doctor_roles"]


def test_every_role_of_the_site_is_asked_or_read_otherwise() -> None:
    # the store is asked what the served model needs; a lock is held by runs; a measurement is no state;
    # and whose box it is they ask first
    otherwise = {"fabric_check", "model_store", "operation", "identity"}
    assert set(verdict.playbooks()) == set(BY_DEFAULT) | otherwise
    assert {part.role for part in ASKED} == set(BY_DEFAULT)
    applied = {stem for stems in verdict.playbooks().values() for stem in stems}
    assert {stem for stems in verdict.AREAS.values() for stem in stems} >= applied


@pytest.mark.parametrize("role", BY_DEFAULT)
def test_every_file_of_a_role_is_asked_or_only_for_changing(role: str) -> None:
    there = {path.stem for path in (roles.ROLES / role / "tasks").glob("*.yml")}
    mine = {part.file for part in ASKED if part.role == role}
    left = there - mine - ONLY_WHEN_CHANGING.get(role, set())
    assert left <= ONLY_AN_ORDER if len(mine) > 1 else not left, left


@pytest.mark.parametrize("part", ASKED, ids=lambda part: f"{part.role}/{part.file}")
def test_every_module_of_what_is_asked_has_a_way_to_be(part: Part) -> None:
    known = {*parts.ON_A_NODE, *parts.ON_THE_CONTROLLER, parts.APPLIED, *roles.INCLUDES, *NEITHER_KEPT_NOR_JUDGED}
    planned = {register for _, register in parts.PLANS}
    used = {task.module for task in roles.tasks(part.role, part.file, load) if task.register not in planned}
    assert used - known - {"store.check"} == set()  # whose own program reads the weights


def test_no_module_is_known_for_nothing() -> None:
    used = {task.module for part in ASKED for task in roles.tasks(part.role, part.file, load)}
    assert used >= {*parts.ON_A_NODE, *parts.ON_THE_CONTROLLER, *NEITHER_KEPT_NOR_JUDGED}


def entries(written: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in written:
        yield entry
        yield from entries(entry.get("block", []))


def test_no_task_that_is_asked_loops() -> None:
    """Once for each item is a thing that Ansible alone does."""
    modules = {*parts.ON_A_NODE, *parts.ON_THE_CONTROLLER, parts.APPLIED, *roles.INCLUDES}
    for part in ASKED:
        for entry in entries(load(roles.ROLES / part.role / "tasks" / f"{part.file}.yml")):
            asked = {entry[action]["do"] for action in OURS & set(entry)}
            assert not (modules & {*entry, *asked} and "loop" in entry), (part, entry["name"])


def test_what_is_planned_is_what_the_roles_register() -> None:
    for part, register in parts.PLANS:
        assert [task.register for task in roles.tasks(part.role, part.file, load)].count(register) == 1


def test_a_server_beside_the_sparks_is_asked_for_k3s_alone() -> None:
    known = {"__node_base_site": {}, "__k3s_plan": {"hosts": {"box": {"first": True}}}}
    assert {part.role for part in parts.of_a_node("box", known, spark=False)} == {"preflight", "k3s"}
    assert {part.role for part in parts.of_a_node("other", known, spark=False)} == {"preflight"}


def test_a_cluster_that_was_there_before_is_not_planned() -> None:
    known = {"__node_base_site": {"site": {"kubernetes": {"provider": "existing"}}}}
    assert not parts.k3s_is_ours(known) and not parts.k3s_is_ours({"__node_base_site": {"failed": True}})


def test_a_block_hands_down_its_conditions_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r" / "tasks").mkdir(parents=True)
    (tmp_path / "r" / "tasks" / "main.yml").write_text("""
- name: Outer
  when: [one, two]
  vars: {a: 1, b: 1}
  block:
    - name: Inner
      sparkloom_node: {do: files, files: []}
      when: three
      vars: {b: 2}
      register: there
  rescue:
    - name: Nobody's question
      ansible.builtin.fail:
""")
    monkeypatch.setattr(roles, "ROLES", tmp_path)
    (task,) = roles.tasks("r", "main", load)
    assert task.when == ("one", "two", "three") and task.variables == {"a": 1, "b": 2}
    assert (task.module, task.register, task.name, task.area) == ("files", "there", "Inner", "main")


def test_whoever_only_asks_puts_no_load_on_a_gpu() -> None:
    told = asking.given("x")
    assert told["preflight_cuda"] is False and told["ansible_check_mode"] is True
    assert {told[name] for name in asking.PROFILES} == {"x"}
