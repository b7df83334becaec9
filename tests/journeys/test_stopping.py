"""A model is stopped for a weekend and started again; an API server on this machine's loopback is the cluster."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator

import pytest
import yaml

from tests import kube_api
from tests.journeys.sites import off
from tests.journeys.terminal import Terminal

MODEL = "openai--gpt-oss-120b--2node"
SITE = "-i inventories/evening"


@pytest.fixture
def served(terminal: Terminal) -> Iterator[kube_api.Cluster]:
    """Two Sparks serve it."""
    said = off(terminal.home) / "group_vars/all/cluster.yml"
    lines = said.read_text().splitlines()
    said.write_text("\n".join(f"profile: {MODEL}" if line.startswith("profile:") else line for line in lines) + "\n")
    with kube_api.serving(terminal.home) as (cluster, kubeconfig):
        shutil.copy(kubeconfig, terminal.home / ".kube/sparkloom-evening")
        shown = terminal.type(f"sparkloom show manifests {MODEL} {SITE} 2>/dev/null", copied=True).text
        cluster.put(*filter(None, yaml.safe_load_all(shown)))
        for number in range(1, 5):
            conditions = [{"type": "Ready", "status": "True"}]
            cluster.put({"kind": "Node", "metadata": {"name": f"spark{number}", "labels": {}}, "spec": {},
                         "status": {"conditions": conditions}})  # fmt: skip
        yield cluster


def test_a_weekend_without_it(terminal: Terminal, served: kube_api.Cluster) -> None:
    terminal.type("sparkloom stop --help").has("all", "until `start`")
    terminal.type("sparkloom start --help").has("wait until it serves")
    terminal.type(f"sparkloom stop {MODEL[:-1]}x {SITE}", 2).has("no such group", f"did you mean '{MODEL}'")
    assert not any(served.asleep().values()), "nothing was stopped by a slip"
    terminal.type(f"sparkloom stop {SITE}").has("is stopped by", "UTC", "runs any more", f"sparkloom start {MODEL}")
    assert not [name for kind, name in served.objects if kind == "Pod"]
    told = json.loads(terminal.type(f"sparkloom status --json {SITE}", 1, copied=True).text)
    by = told["groups"][0]["word"].removeprefix("stopped by ")
    assert (told["serving"], told["groups"][0]["state"]) == (False, "stopped") and "@" in by
    terminal.type(f"sparkloom status {SITE}", 1).has(f"{MODEL} is stopped by {by}", "sparkloom start")
    terminal.type(f"sparkloom stop all {SITE}").has("stopped already", by)
    terminal.begin(f"sparkloom status --watch {SITE} | head -1")
    terminal.sees("stopped by")
    terminal.end(None, copied=True)
    served.objects["Node", "spark2"]["status"]["conditions"][0]["status"] = "False"
    terminal.type(f"sparkloom start {SITE}", 1).has("spark2 is not Ready", "is it switched on?")
    served.objects["Node", "spark2"]["status"]["conditions"][0]["status"] = "True"
    terminal.type(f"sparkloom start {SITE}").has(f"{MODEL} serves", "2 ranks ready")
    terminal.type(f"sparkloom status {SITE}").has("serves")
    terminal.type(f"sparkloom start {SITE}").has("is not stopped", "sparkloom status")
    for verb, told in (("stop", {"stopped": [MODEL]}), ("start", {"groups": [MODEL], "missing": []})):
        shown = terminal.type(f"sparkloom {verb} --json {SITE} 2>/dev/null", copied=True).text
        assert json.loads(shown) == told, "a script reads this alone"


def test_a_spark_that_is_off_is_named_at_once(terminal: Terminal, served: kube_api.Cluster) -> None:
    """It took 32 s, and called that Spark's rank ready."""
    served.silent = {name for kind, name in served.objects if kind == "Pod" and "rank1" in name}
    assert served.silent
    begun = time.monotonic()
    terminal.type(f"sparkloom status {SITE}").has("rank 1", "ready")  # nobody knows of it yet
    for number, second in ((1, 40), (2, 5)):
        spec = {"renewTime": f"2026-11-26T12:03:{second:02d}.000000Z"}
        served.put({"kind": "Lease", "metadata": {"name": f"spark{number}"}, "spec": spec})
    seen = terminal.type(f"sparkloom status {SITE}", 1)
    assert time.monotonic() - begun < kube_api.DIALS / 2
    seen.has("rank 1", "silent", "spark2 says nothing since 2026-11-26T12:03:05", "is it switched on?")


def test_where_nothing_was_ever_served(terminal: Terminal, served: kube_api.Cluster) -> None:
    for kind, name in list(served.objects):
        if kind != "Node":
            del served.objects[kind, name]
    for verb in ("stop", "stop all", "start all"):
        terminal.type(f"sparkloom {verb} {SITE}", 2).has("nothing is set up here", "serve.yml")
