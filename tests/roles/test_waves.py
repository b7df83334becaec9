"""The waves of playbooks/serve.yml by Ansible itself, where groups take turns: never two of a turn at once.

An API server on loopback, the role's own tasks and Kubernetes' own modules. What looks at memory, waits for an engine
and asks it is a stand-in here: there is none.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.inputs.fleet_record import Running
from sparkloom.render.manifests import names
from sparkloom.site import rollout
from tests import inventories, kube_api
from tests.inventories import OSS, QWEN
from tests.places import REPO

TURNS = f"""\
serve:
  - {{profile: {OSS}, name: big, idle_minutes: 10, turns: t}}
  - {{profile: {QWEN}, name: chat, idle_minutes: 10, turns: t}}
"""
NOT_HERE = ("sparkloom_wait", "sparkloom_smoke", "sparkloom_transport", "sparkloom_key", "sparkloom_record",
            "sparkloom_files", "sparkloom_memory")  # fmt: skip
STAND_IN = """
import json, os
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        args = self._task.args
        if self._task.action == "sparkloom_record" and args["what"] == "good":
            with open(os.environ["PROVED"], "a") as file:
                file.write(args["told"]["profile"] + "\\n")
        if self._task.action == "sparkloom_wait" and args["read"] == os.environ.get("FAILS"):
            return {"failed": True, "msg": "it does not start"}
        return {"pods": {"0": "pod"}, "seconds": 1, "msg": "said", "answer": {}, "now": {}, "changed": False}
"""
PLAY = """
- hosts: sparks
  gather_facts: false
  vars_files: [{told}]
  tasks:
    - ansible.builtin.include_role: {{name: model_serving, tasks_from: waves}}
    - ansible.builtin.debug: {{msg: "broken: {{{{ __model_serving_broken.keys() | list }}}}"}}
      run_once: true
"""
WAKER = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "waker", "namespace": "sparkloom"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "waker"}},
             "template": {"metadata": {"labels": {"app": "waker"}}, "spec": {}}},
}  # fmt: skip


@dataclass
class Site:
    folder: Path
    inventory: Path
    cluster: kube_api.Cluster

    def applied(self, name: str) -> list[dict[str, Any]]:
        """Its record and its one rank: what the waves are about."""
        made = case.render_group(name, self.inventory, force=True).objects
        return [one for one in made if one["kind"] == "StatefulSet" or "record.json" in one.get("data", {})]

    def runs(self, **groups: str) -> dict[str, Running]:
        """Each as it stands there, `awake` or `asleep` as it should be, or `old`, asleep with another configuration."""
        found = {}
        for one in rollout.of_list(case.fleet(self.inventory, runs={}), {}, {}, "refuse").members:
            if one.name not in groups:
                continue
            awake, seat = groups[one.name] == "awake", one.seat
            told = case.render(one.profile, self.inventory, seat=seat, force=True).digest
            told = "of-before" if groups[one.name] == "old" else told
            found[one.name] = Running(one.name, one.profile, one.nodes, seat["vf"], None, seat["engine_key"], told)
            found[one.name] = replace(found[one.name], awake=awake, proved=told)
            objects = self.applied(one.name)
            for item in objects:
                if item["kind"] == "StatefulSet":
                    item["spec"]["replicas"] = int(awake)
            self.cluster.put(*objects)
        self.cluster.put(WAKER)
        self.cluster.seen.clear()
        return found

    def play(self, runs: dict[str, Running], *words: str, renewed: bool = False, **more: str) -> tuple[str, list[str]]:
        """What Ansible said, and which groups were proved in that order. `renewed`: the engines' keys are others."""
        made = rollout.of_list(case.fleet(self.inventory, runs=runs), runs, {}, "refuse")
        planned = {one.name: {"plan": self._plan(one), "last": "", "renewed": renewed} for one in made.members}
        reached = {"kubeconfig": str(self.folder / "kubeconfig"), "namespace": "sparkloom"}
        told = {
            "__model_serving_fleet": {**made.as_dict(), **reached, "listed": True},
            "__model_serving_planned": planned, "__model_serving_broken": {}, "__model_serving_ends": [],
            "__model_serving_memory_before": {}, "model_serving_profile": "",
        }  # fmt: skip
        (self.folder / "told.yml").write_text(yaml.safe_dump(json.loads(json.dumps(told))))
        (self.folder / "play.yml").write_text(PLAY.format(told=self.folder / "told.yml"))
        proved = self.folder / "proved"
        proved.write_text("")
        env = {
            **os.environ, "PATH": f"{REPO}/.venv/bin:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1",
            "PROVED": str(proved),
            "ANSIBLE_ACTION_PLUGINS": f"{self.folder / 'stand_ins'}:{REPO / 'plugins/action'}",
            "ANSIBLE_ROLES_PATH": str(REPO / "roles"), "ANSIBLE_CALLBACKS_ENABLED": "sparkloom_once",
            **more,
        }  # fmt: skip
        play, two = str(self.folder / "play.yml"), "spark1,spark2"
        done = subprocess.run(
            ["ansible-playbook", "-i", str(self.inventory), "-c", "local", "-l", two, play, *words],
            cwd=REPO, env=env, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == (2 if "FAILS" in more else 0), done.stdout + done.stderr
        return done.stdout, proved.read_text().split()

    def _plan(self, one: rollout.Member) -> dict[str, Any]:
        keys = "answer", "config_hash", "engine_key", "manifest", "port", "build", "wait_seconds", "group_secret"
        return {
            **dict.fromkeys(keys, ""), "objects": self.applied(one.name), "labels": {names.PROFILE: one.name},
            "read": one.name, "told": {"profile": one.name}, "name": one.name, "ranks": 1, "rails": 0, "kernels": {},
            "namespace": "sparkloom", "wait_seconds": 5, "build": str(self.folder),
        }  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with kube_api.serving(tmp_path) as (cluster, kubeconfig):
        inventory = inventories.serving(tmp_path, TURNS)
        said = inventory / "group_vars" / "all" / "cluster.yml"
        said.write_text(said.read_text().replace("~/.kube/sparkloom-gb10", str(kubeconfig)))
        (tmp_path / "stand_ins").mkdir()
        for name in NOT_HERE:
            (tmp_path / "stand_ins" / f"{name}.py").write_text(STAND_IN)
        yield Site(tmp_path, inventory, cluster)


def never_both(cluster: kube_api.Cluster) -> bool:
    return not any({"big", "chat"} <= there for there in cluster.seen)


def test_of_a_turn_each_is_proved_and_the_last_is_awake(site: Site) -> None:
    _, proved = site.play(site.runs())
    assert proved == ["big", "chat"] and site.cluster.asleep() == {"big": True, "chat": False}
    assert never_both(site.cluster) and frozenset({"big"}) in site.cluster.seen, site.cluster.seen
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1
    assert site.cluster.done[0] == "PATCH Deployment waker" == site.cluster.done[-1], "it stood aside meanwhile"


def test_a_second_run_changes_nothing_and_wakes_nobody(site: Site) -> None:
    said, proved = site.play(site.runs(big="asleep", chat="awake"))
    assert proved == ["chat"] and site.cluster.asleep() == {"big": True, "chat": False}
    assert not [one for one in site.cluster.done if "StatefulSet" in one or "Deployment" in one], site.cluster.done
    assert "changed=0" in said


def test_another_key_starts_who_is_awake_anew_and_wakes_nobody(site: Site) -> None:
    _, proved = site.play(site.runs(big="asleep", chat="awake"), renewed=True)
    assert proved == ["chat"] and site.cluster.asleep() == {"big": True, "chat": False}
    assert [one for one in site.cluster.done if "StatefulSet" in one] == [
        "DELETE StatefulSet chat-rank0", "PATCH StatefulSet chat-rank0"
    ]  # fmt: skip
    assert site.cluster.done[0] == "PATCH Deployment waker" == site.cluster.done[-1]


def test_who_is_awake_sleeps_for_one_that_changed(site: Site) -> None:
    _, proved = site.play(site.runs(big="old", chat="awake"))
    assert proved == ["big"] and site.cluster.asleep() == {"big": False, "chat": True}
    assert never_both(site.cluster) and {frozenset({"chat", "waker-0"}), frozenset({"big"})} <= set(site.cluster.seen)


def test_one_that_does_not_start_keeps_nobody_and_the_waker_works_again(site: Site) -> None:
    said, proved = site.play(site.runs(), FAILS="big")
    assert proved == ["chat"] and "broken" in said
    assert site.cluster.asleep() == {"big": True, "chat": False} and never_both(site.cluster)
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1


def test_a_dry_run_puts_nobody_to_sleep(site: Site) -> None:
    site.play(site.runs(big="old", chat="awake"), "--check")
    assert site.cluster.asleep() == {"big": True, "chat": False} and site.cluster.done == []
