"""From what runs to what is planned, step by step as role model_serving goes. Of a turn never two are awake.

An API server on loopback and Kubernetes' own client. The proof, which waits for an engine and asks it, is a stand-in
here: there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.launch import fleet_record
from sparkloom.launch.groups import Running
from sparkloom.onnode import stopping
from sparkloom.onnode.now.labels import CONFIG_HASH, STOPS
from sparkloom.site import client
from sparkloom.site.groups import planning, proof, reconcile
from sparkloom.site.groups.group import RenderedGroup
from sparkloom.site.groups.reconcile import Reconciler, Run
from tests import inventories, kube_api
from tests.inventories import OSS, QWEN

BY = "anna@laptop, 2026-11-26 11:20 UTC"
TURNS = f"""\
serve:
  - {{profile: {OSS}, name: big, idle_minutes: 10, turns: t}}
  - {{profile: {QWEN}, name: chat, idle_minutes: 10, turns: t}}
"""
OPTIONS = {
    "force": True, "transport": "refuse", "timeout": 0, "restarts": 3, "smoke_tokens": 8, "smoke_timeout": 5,
    "memory_slack": 8, "rollback": False,
}  # fmt: skip
WAKER = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "waker", "namespace": "sparkloom"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "waker"}},
             "template": {"metadata": {"labels": {"app": "waker"}}, "spec": {"containers": [{"name": "w"}]}}},
}  # fmt: skip


@dataclass
class Site:
    folder: Path
    inventory: Path
    cluster: kube_api.Cluster
    proved: list[str] = field(default_factory=list)  # in that order
    fails: str = ""

    def applied(self, name: str) -> list[dict[str, Any]]:
        """Its record and its one rank: what the waves are about."""
        made = case.render_group(name, self.inventory, force=True).objects
        return [one for one in made if one["kind"] == "StatefulSet" or "record.json" in one.get("data", {})]

    def runs(self, **groups: str) -> dict[str, Running]:
        """Each as it stands there, `awake` or `asleep` as it should be, or `old`, asleep with another configuration."""
        found = {}
        for one in planning.of_list(case.fleet(self.inventory, runs={}), {}, {}, "refuse").members:
            if one.name not in groups:
                continue
            awake, seat = groups[one.name] == "awake", one
            told = case.render(seat.profile, self.inventory, seat=seat, force=True).digest
            told = "of-before" if groups[one.name] == "old" else told
            found[one.name] = Running(one.name, seat.profile, one.nodes, seat.vf, only=seat.only, config_hash=told)
            found[one.name] = replace(found[one.name], awake=awake, proved=told)
            objects = self.applied(one.name)
            for item in objects:
                if item["kind"] == "StatefulSet":
                    item["spec"]["replicas"] = int(awake)
            self.cluster.put(*objects)
        self.cluster.put(WAKER)
        self.cluster.seen.clear()
        return found

    def run(
        self, runs: dict[str, Running], *, fails: str = "", renewed: bool = False, keyed: bool = False,
        dry: bool = False, good: str = "",
    ) -> Run:  # fmt: skip
        """All steps as the role takes them. `fails`: which group does not start; `renewed`: engines have other keys,
        unless `keyed` knows better; `good`: what its way back serves.
        """
        planned = planning.of_list(case.fleet(self.inventory, runs=runs), runs, {}, "refuse")
        self.fails, self.proved, run = fails, [], Run.of(planned, OPTIONS, listed=True)
        self.step(run, dry).prepare(run.groups)
        if not keyed:
            run.renewed = [one["name"] for one in run.groups] if renewed else []
        for wave in run.waves:
            self.step(run, dry).end(wave)
            self.step(run, dry).start(wave, {})
        self.fails = "" if good else fails
        back = planning.only(planned, fails) if fails else planned
        self.step(run, dry).back(lambda *_: back)
        for wave in run.waves:
            self.step(run, dry).end(wave)
            self.step(run, dry).start(wave, {})
        self.step(run, dry).finish()
        return run

    def step(self, run: Run, dry: bool) -> Reconciler:
        """Each has the run as Ansible hands it on: as plain data."""
        handed = json.loads(json.dumps(asdict(run)))
        for name, value in handed.items():
            setattr(run, name, value)
        return Reconciler(case.cluster(self.inventory), run, print, print, dry=dry)

    def prove(self, group: RenderedGroup) -> dict[str, Any]:
        if group.name == self.fails:
            raise proof.NotProved("it does not start")
        self.proved.append(group.name)
        return {"ranks": 1, "transport": "", "seconds": 90.0}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with kube_api.serving(tmp_path) as (cluster, kubeconfig):
        inventory = inventories.serving(tmp_path, TURNS)
        said = inventory / "group_vars" / "all" / "cluster.yml"
        said.write_text(said.read_text().replace("~/.kube/sparkloom-gb10", str(kubeconfig)))
        made = Site(tmp_path, inventory, cluster)
        monkeypatch.setattr(reconcile.kubernetes, "judge", lambda *_: [])
        monkeypatch.setattr(client.Client, "facts", lambda *_: {})
        monkeypatch.setattr(proof.Proof, "prove", lambda self, *_: made.prove(self.group))
        monkeypatch.setattr(RenderedGroup, "folder", tmp_path)
        monkeypatch.setattr(fleet_record, "path", lambda _: tmp_path / "fleet.json")
        yield made


def never_both(cluster: kube_api.Cluster) -> bool:
    return not any({"big", "chat"} <= there for there in cluster.seen)


def stops(site: Site) -> dict[str, str]:
    return dict(site.cluster.objects["ConfigMap", STOPS]["data"])


def workloads(site: Site) -> list[str]:
    return [one for one in site.cluster.done if "Deployment" in one or "StatefulSet" in one]


def test_of_a_turn_each_is_proved_and_the_last_is_awake(site: Site) -> None:
    site.run(site.runs())
    assert site.proved == ["big", "chat"] and site.cluster.asleep() == {"big": True, "chat": False}
    assert never_both(site.cluster) and frozenset({"big"}) in site.cluster.seen, site.cluster.seen
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1
    assert workloads(site)[0] == "PATCH Deployment waker" == workloads(site)[-1], "it stood aside meanwhile"


def test_a_second_run_changes_nothing_and_wakes_nobody(site: Site) -> None:
    run = site.run(site.runs(big="asleep", chat="awake"))
    assert site.proved == ["chat"] and not run.held and site.cluster.asleep() == {"big": True, "chat": False}
    assert workloads(site) == []


@pytest.mark.parametrize("big", ["asleep", "old"])
def test_a_stopped_group_is_set_up_as_it_should_be_and_stays_stopped(site: Site, big: str) -> None:
    """Also over another configuration: on the old code it started."""
    runs = site.runs(big=big, chat="awake")
    stopping.scale(client.of(case.cluster(site.inventory)), "sparkloom", "big-rank0", 0)
    run = site.run({**runs, "big": replace(runs["big"], stopped=BY)})
    assert site.proved == ["chat"] and run.asleep == [] and site.cluster.asleep() == {"big": True, "chat": False}
    notes = site.cluster.objects["StatefulSet", "big-rank0"]["metadata"]["annotations"]
    assert stops(site) == {"big": BY} and notes[CONFIG_HASH] == run.groups[0]["kernels"]["mark"]
    assert [one["stopped"] for one in run.groups] == [BY, ""]


def test_a_stopped_group_that_moves_is_made_anew_and_stays_stopped(site: Site) -> None:
    runs = site.runs(big="asleep", chat="awake")
    moved = replace(runs["big"], stopped=BY, nodes=("spark4",), turns="")
    run = site.run({**runs, "big": moved})
    assert run.groups[0]["stopped"] == BY and "big" not in site.proved
    assert stops(site) == {"big": BY} and site.cluster.asleep()["big"]


def test_one_that_is_set_up_anew_is_not_stopped_as_an_earlier_one_of_its_name_was(site: Site) -> None:
    site.cluster.put({"kind": "ConfigMap", "metadata": {"name": STOPS}, "data": {"big": BY, "other": BY}})
    site.run(site.runs())
    assert site.cluster.asleep()["big"] and stops(site) == {"big": "", "other": BY}, "the waker wakes it"


def test_another_key_starts_who_is_awake_anew_and_wakes_nobody(site: Site) -> None:
    site.run(site.runs(big="asleep", chat="awake"), renewed=True)
    assert site.proved == ["chat"] and site.cluster.asleep() == {"big": True, "chat": False}
    assert workloads(site)[1:-1] == ["DELETE StatefulSet chat-rank0", "PATCH StatefulSet chat-rank0"]
    assert workloads(site)[0] == "PATCH Deployment waker" == workloads(site)[-1]


def test_who_is_awake_sleeps_for_one_that_changed(site: Site) -> None:
    site.run(site.runs(big="old", chat="awake"))
    assert site.proved == ["big"] and site.cluster.asleep() == {"big": False, "chat": True}
    assert never_both(site.cluster) and {frozenset({"chat", "waker-0"}), frozenset({"big"})} <= set(site.cluster.seen)


def test_one_that_does_not_start_keeps_nobody_and_the_waker_works_again(site: Site) -> None:
    run = site.run(site.runs(), fails="big")
    assert site.proved == ["chat"] and list(run.failed) == ["big"]
    (said,) = run.ends
    assert "it does not start" in said and "big had nothing to go back to; the other groups are as they were" in said
    assert site.cluster.asleep() == {"big": True, "chat": False} and never_both(site.cluster)
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1


def test_a_dry_run_puts_nobody_to_sleep(site: Site) -> None:
    site.run(site.runs(big="old", chat="awake"), dry=True)
    assert site.cluster.asleep() == {"big": True, "chat": False} and site.cluster.done == []


def test_what_served_before_comes_back_where_a_start_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "rollback", True)
    runs = site.runs(big="old", chat="asleep")
    proved = {"profile": QWEN, "config_hash": "h"}
    site.cluster.put({"kind": "ConfigMap", "metadata": {"name": "served"}, "data": {"served.json": json.dumps(proved)}})
    run = site.run(runs, fails="big", good=OSS)
    (said,) = run.ends
    assert said.endswith(f"{QWEN} is served again") and "it does not start" in said
    assert site.proved == ["big"] and site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1


def test_a_run_that_was_cut_off_with_a_new_key_made_starts_that_group_anew(site: Site) -> None:
    """An engine reads its key once: on the old code the next run took it for one that knows the new key."""
    runs = site.runs(big="asleep", chat="awake")
    site.cluster.put({"kind": "ConfigMap", "metadata": {"name": "rollout"},
                      "data": {"rollout.json": json.dumps({"renewed": ["chat"], "held": True})}})  # fmt: skip
    site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] = 0
    site.run(runs, keyed=True)
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1
    assert "DELETE StatefulSet chat-rank0" in workloads(site)
    assert ("ConfigMap", "rollout") not in site.cluster.objects


def test_memory_that_is_not_back_stops_the_run(site: Site) -> None:
    run = Run.of(planning.Rollout([], []), OPTIONS, listed=True)
    run.memory_before, run.needs = {"spark1": 110.0}, {"spark1": 102.0}
    memory = {"available_gib": 60.0, "total_gib": 121.0, "resident_gib": 4.0, "largest": [], "waited": 5.0}
    with pytest.raises(reconcile.Stopped) as stopped:
        site.step(run, dry=False).start(
            {"start": [], "stop": [], "sleep": [], "idle": []}, {"spark1": {"memory": memory}}
        )
    (finding,) = stopped.value.findings
    assert (finding.where, finding.rule) == ("spark1", "memory is back")


def test_what_a_stopped_run_did_not_come_to_is_known_to_the_next(site: Site) -> None:
    """Its engine's key is another one, and it still runs with the old one."""
    runs = site.runs(big="asleep", chat="awake")
    planned = planning.of_list(case.fleet(site.inventory, runs=runs), runs, {}, "refuse")
    run = Run.of(planned, OPTIONS, listed=True)
    run.renewed, run.held = ["chat"], True
    site.step(run, dry=False).finish()
    assert site.cluster.objects["Deployment", "waker"]["spec"]["replicas"] == 1
    assert reconcile.journal(client.of(case.cluster(site.inventory)))["renewed"] == ["chat"]


def test_a_dry_run_that_meets_a_refusal_writes_no_record(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise proof.NotProved("the API server refuses it")

    monkeypatch.setattr(reconcile.Reconciler, "_apply", refused)
    runs = site.runs(big="old", chat="awake")
    with pytest.raises(proof.NotProved):
        site.run(runs, dry=True)
    assert site.cluster.done == []
