"""`sparkloom stop` and `start` as typed, against an API server on loopback: what stays, and who did it."""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.site.doctor import look
from sparkloom.site.groups.group import RenderedGroup
from tests import inventories, kube_api
from tests.inventories import OSS, QWEN
from tests.places import REPO

LIST = f"serve:\n  - {{profile: {OSS}, name: big}}\n  - {{profile: {QWEN}, name: chat, idle_minutes: 10}}\n"


BY = "anna@laptop, 2026-11-26 11:20 UTC"


@dataclass
class Site:
    inventory: Path
    cluster: kube_api.Cluster
    home: Path

    def type(self, command: str, code: int = 0) -> str:
        program, *words = command.split()
        path = str(Path(sys.executable).with_name(program))
        env = {**os.environ, "HOME": str(self.home), "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(
            [path, *words, "-i", str(self.inventory)], cwd=REPO, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def set(self, name: str) -> dict[str, Any]:
        return self.cluster.objects["StatefulSet", f"{name}-rank0"]

    def note(self, name: str) -> str:
        return str(self.cluster.objects.get(("ConfigMap", "stopped"), {}).get("data", {}).get(name, ""))

    def status(self, code: int = 1) -> dict[str, dict[str, Any]]:
        told = json.loads(self.type("sparkloom status --json", code))
        return {one["name"]: one for one in told["groups"]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with kube_api.serving(tmp_path) as (cluster, kubeconfig):
        inventory = inventories.serving(tmp_path, LIST)
        said = inventory / "group_vars" / "all" / "cluster.yml"
        said.write_text(said.read_text().replace("~/.kube/sparkloom-gb10", str(kubeconfig)))
        for name in ("big", "chat"):
            cluster.put(*case.render_group(name, inventory, force=True).objects)
        for number in range(1, 5):
            cluster.put(node(f"spark{number}", ready=True))
        yield Site(inventory, cluster, tmp_path)


WAITS = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
NO_IMAGE = {"name": "engine", "ready": False, "restartCount": 0, "imageID": "", "state": WAITS}


def node(name: str, *, ready: bool) -> dict[str, Any]:
    condition = {"type": "Ready", "status": str(ready)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": {"conditions": [condition]}}


def test_a_stopped_group_stays_so_until_it_is_started(site: Site) -> None:
    told = site.type("sparkloom stop big")
    by = site.note("big")
    assert by.startswith(f"{getpass.getuser()}@") and by.endswith(" UTC") and f"stopped by {by}" in told
    assert site.cluster.asleep() == {"big": True, "chat": False}, "the other one serves on"
    assert ("Pod", "big-rank0-0") not in site.cluster.objects, "it returns when nothing runs any more"
    assert "big is stopped already" in site.type("sparkloom stop big") and site.note("big") == by
    shown = site.status()
    assert (shown["big"]["state"], shown["big"]["word"]) == ("stopped", f"stopped by {by}")
    assert f"is stopped by {by}" in site.type("sparkloom status", 1)
    now, fields = datetime.now(UTC), [{"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}]
    behind = {"renewTime": (now - timedelta(hours=1)).isoformat()}
    site.cluster.put({"kind": "Lease", "metadata": {"name": "spark3", "managedFields": fields}, "spec": behind})
    told = site.type("sparkloom start big")
    assert "big serves" in told and not site.note("big")
    assert re.search(r"spark3: its clock is 3,(59|60)\d s behind the cluster's", " ".join(told.split())), told
    del site.cluster.objects["Lease", "spark3"]
    assert site.cluster.asleep() == {"big": False, "chat": False} and site.status(0)["big"]["state"] == "serves"
    site.cluster.objects["Pod", "big-rank0-0"]["status"] |= {"containerStatuses": [NO_IMAGE], "phase": "Pending"}
    told = " ".join(site.type("sparkloom start big", 1).split())
    assert "big is not stopped, and does not serve: rank 0 on no node: its image" in told, "exit 0 before"
    assert "does not come to spark1: Back-off" in told


def test_a_stop_of_before_the_map_counts_until_somebody_says_otherwise(site: Site) -> None:
    """Until November 2026 an annotation said so: one that is not taken away is no second stop."""
    for name in ("big", "chat"):
        site.set(name)["metadata"]["annotations"]["sparkloom/stopped"] = f"{BY} on {name}"
        site.set(name)["spec"]["replicas"] = 0
    now = site.status()
    assert now["big"]["word"] == f"stopped by {BY} on big" and now["chat"]["word"] == f"stopped by {BY} on chat"
    assert f"stopped already, by {BY}" in site.type("sparkloom stop big")
    site.type("sparkloom start all")
    now = site.status(0)
    assert (now["big"]["state"], now["chat"]["state"]) == ("serves", "asleep"), "asleep, and not stopped again"
    assert site.set("chat")["metadata"]["annotations"]["sparkloom/stopped"], "nobody may change what a set says"


def test_the_doctor_finds_a_stopped_group_as_planned_and_says_by_whom(site: Site) -> None:
    """On the old code its StatefulSets drifted: no pod where one was planned."""
    site.type("sparkloom stop big")
    cluster = case.cluster(site.inventory)
    group = RenderedGroup(case.render_group("big", site.inventory, force=True), "refuse")
    asked = look.Asked(cluster, group, None)
    assert look.look("objects", asked) == {"changed": False, "differing": []}
    told = look.look("ranks", asked)
    (row,) = told["rows"]
    assert not told["failed"] and row["severity"] == "info" and row["found"] == f"stopped by {site.note('big')}"


def test_which_is_meant(site: Site) -> None:
    assert "name one, as `sparkloom stop big`, or all" in site.type("sparkloom stop", 2)
    assert "did you mean 'chat'" in site.type("sparkloom stop chatt", 2)
    site.type("sparkloom stop all")
    assert site.cluster.asleep() == {"big": True, "chat": True}
    told = site.type("sparkloom start all")
    assert "big serves" in told and "chat is on demand: the next request wakes it" in told
    assert site.cluster.asleep() == {"big": False, "chat": True} and not site.note("chat")


def test_a_node_that_is_away_is_named_and_nothing_is_started(site: Site) -> None:
    site.type("sparkloom stop big")
    place = site.set("big")["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"]
    site.cluster.put(node(place, ready=False))
    told = site.type("sparkloom start big", 1)
    assert f"big was not started: its node {place} is not Ready" in told
    assert site.cluster.asleep()["big"] and site.note("big"), "its record stays"


def test_nobody_stops_what_somebody_works_on(site: Site) -> None:
    notes = {"sparkloom/command": "ansible-playbook site.yml", "sparkloom/state": "runs", "sparkloom/machine": "other",
             "sparkloom/since": "10:00", "sparkloom/process": "1-1"}  # fmt: skip
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "bob@desk"},
             "metadata": {"name": "sparkloom-fleet", "namespace": "default", "annotations": notes}}  # fmt: skip
    lease["spec"] |= {"renewTime": "2026-11-26T10:00:00.000000Z"}
    site.cluster.put(
        {**lease, "metadata": {**lease["metadata"], "annotations": {**notes, "sparkloom/machine": boot()}}}
    )
    pid = f"{os.getpid()}-{Path(f'/proc/{os.getpid()}/stat').read_text().rpartition(') ')[2].split()[19]}"
    site.cluster.objects["Lease", "sparkloom-fleet"]["metadata"]["annotations"]["sparkloom/process"] = pid
    assert "site.yml of bob@desk" in site.type("sparkloom stop big", 2) and not site.note("big")


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.slow
def test_the_playbooks_do_the_same(site: Site) -> None:
    said = site.type("ansible-playbook playbooks/stop.yml -e group=big")
    assert f"big is stopped by {site.note('big')}" in said and site.note("big")
    assert site.cluster.asleep() == {"big": True, "chat": False}
    assert "big serves" in site.type("ansible-playbook playbooks/start.yml -e group=big") and not site.note("big")
