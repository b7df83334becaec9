"""What status, doctor and the last command say is one story; what somebody changed by hand is put right by serve."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.base import names
from testbed.beds.rack import inventory
from testbed.trials import kills
from testbed.trials.breakage import broken
from testbed.trials.kills import kubectl
from tests.places import REPO
from tests.rack.running import run, site_status

pytestmark = [pytest.mark.rack, pytest.mark.slow]
SERVE = ("ansible-playbook", "-i", str(inventory.path()), "playbooks/serve.yml")


def serve(*words: str) -> str:
    done = run(*(words or SERVE), "-e", f"profile={site_status()['profile']}", ANSIBLE_NOCOLOR="1")
    assert done.returncode == 0, done.stdout[-6000:]
    return " ".join(done.stdout.split())


def until(what: Callable[[], Any], seconds: float = 240) -> Any:
    limit = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < limit, json.dumps(site_status(), indent=1)
        time.sleep(0.5)
    return found


def test_a_cable_that_is_out_is_named_and_nobody_says_roce(group: kills.ServedGroup) -> None:
    """The rank looks every 2 s; ten seconds are the promise, the rest is this machine's."""
    spark, node = list(names.NODES.items())[2]
    with broken(spark, "link-down", "b"):
        seen = until(lambda: (now := site_status())["rails"] and now, 30)
        assert seen["transport"] is None and any("has no carrier" in text and node in text for text in seen["rails"])
        text = run("sparkloom", "status", "-i", str(inventory.path())).stdout
        assert "no carrier" in text and "rails: roce" not in text
    until(lambda: (now := site_status())["serving"] and not now["rails"])


def test_an_attachment_that_is_gone_is_why_a_pod_waits_and_the_site_brings_it_back(group: kills.ServedGroup) -> None:
    kubectl("delete", "network-attachment-definitions.k8s.cni.cncf.io", "rail-a-vf0")
    kubectl("delete", "pod", site_status()["ranks"][1]["pod"])
    seen = until(lambda: (now := site_status()) and "attachment rail-a-vf0" in now["ranks"][1]["cause"] and now, 120)
    assert len(seen["ranks"]) == len(names.NODES) and "playbooks/network.yml" in seen["ranks"][1]["cause"]
    serve(*SERVE[:-1], "site.yml", "--tags", "network,serve")
    until(lambda: site_status()["serving"])


def test_a_rank_that_read_an_edited_plan_is_made_anew_by_serve(group: kills.ServedGroup) -> None:
    """Its hash stayed equal, and only deleting the pod by hand helped."""
    pod = site_status()["ranks"][2]["pod"]
    config = pod.partition("-rank2")[0] + "-rank"
    plan = json.loads(kubectl("get", "configmap", config, "-o", "json"))["data"]["plan.json"]
    patch = json.dumps({"data": {"plan.json": plan + "\n"}})
    kubectl("patch", "configmap", config, "--type=merge", "-p", patch)
    kubectl("delete", "pod", pod)
    until(lambda: site_status()["serving"])
    assert len({rank["supervisor"]["read"] for rank in site_status()["ranks"]}) == 2
    assert "its pod is made anew" in serve()
    assert len({rank["supervisor"]["read"] for rank in site_status()["ranks"]}) == 1


def test_the_doctor_is_green_about_what_serves(group: kills.ServedGroup) -> None:
    done = run("sparkloom", "doctor", "-i", str(inventory.path()), "--json")
    found = json.loads(done.stdout)["findings"]
    assert [one for one in found if one["area"] == "serving" and one["severity"] == "error"] == []


def test_a_second_operation_is_refused_and_an_interrupted_one_is_told(group: kills.ServedGroup) -> None:
    words = [str(Path(sys.executable).with_name(SERVE[0])), *SERVE[1:], "-e", f"profile={site_status()['profile']}"]
    with subprocess.Popen(words, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        until(lambda: str(site_status()["operation"]).startswith("at work"), 60)
        second = run(*SERVE, ANSIBLE_NOCOLOR="1")
        first.send_signal(signal.SIGKILL)
    assert second.returncode == 2 and "one operation at a time: found ansible-playbook" in " ".join(
        second.stdout.split()
    )
    until(lambda: "did not end" in str(site_status()["operation"]), 30)
    assert "did not end: it stopped at" in serve()
    until(lambda: site_status()["operation"] is None, 30)
