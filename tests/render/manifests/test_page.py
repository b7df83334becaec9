"""The page's objects: what it may read, who reaches it, and that its pod is as little as it can be."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.onnode.now.labels import HOSTS, ROUTER
from sparkloom.render import manifests
from sparkloom.render.manifests import names, page
from tests.onnode.now.recorded import FACTS
from tests.onnode.rank.ranks import free_port, oldest_python
from tests.render.manifests import case, schemas

API = [("10.43.0.1", 443), ("192.168.1.11", 6443), ("fd00::11", 6443)]


def objects(facts: Path = FACTS) -> list[dict[str, Any]]:
    return page.page("python:3", "sparkloom", json.loads(facts.read_text()), API)


def one(kind: str, name: str = "page") -> dict[str, Any]:
    return next(item for item in objects() if (item["kind"], item["metadata"]["name"]) == (kind, name))


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_it_is_valid_in_every_release(release: str) -> None:
    written = list(yaml.safe_load_all(manifests.to_yaml(objects())))
    assert [text for item in written for text in schemas.problems(item, release)] == []


def test_it_reads_six_kinds_and_one_secret_and_scales_and_changes_no_set() -> None:
    """The right to change a StatefulSet is the right to run anything as root on its node."""
    (role,) = case.of_kind(objects(), "Role")
    assert [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]] == [
        (["pods", "configmaps", "events"], ["get", "list"], None),
        (["statefulsets"], ["get", "list"], None),
        (["pods/log"], ["get"], None),
        (["secrets"], ["get", "update"], ["client-keys"]),
        (["configmaps"], ["update"], ["page-journal"]),
        (["configmaps"], ["patch"], ["stopped"]),
        (["statefulsets/scale"], ["patch"], None),
    ]
    for name in ("page-journal", "stopped"):
        assert "data" not in one("ConfigMap", name), "an apply leaves what is written there"
    (across,) = case.of_kind(objects(), "ClusterRole")
    assert [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in across["rules"]] == [
        (["nodes"], ["get", "list"], None),
        (["leases"], ["list"], ["sparkloom-fleet"]),
    ]
    assert across["metadata"]["name"] == "sparkloom-page", "two sites may share a cluster"


def test_its_pod_may_nothing_and_takes_little() -> None:
    spec = one("Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 65532
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["resources"]["limits"] == {"memory": "96Mi"}
    assert all("configMap" in volume for volume in spec["volumes"]), "no Secret, no folder of the node"
    assert "env" not in container


def test_the_router_alone_reaches_it_and_it_reaches_the_api_and_engines_alone() -> None:
    heard, out, asks = (one("NetworkPolicy", name)["spec"] for name in ("page", "page-out", "page-asks"))
    assert heard["ingress"] == [
        {"from": [{"podSelector": {"matchLabels": ROUTER}}],
         "ports": [{"protocol": "TCP", "port": 8090}]}
    ]  # fmt: skip
    blocks = {
        (peer["ipBlock"]["cidr"], way["ports"][0]["port"])
        for way in out["egress"]
        for peer in way["to"]
        if "ipBlock" in peer
    }
    assert blocks == {("10.43.0.1/32", 443), ("192.168.1.11/32", 6443), ("fd00::11/128", 6443)}
    assert out["egress"][-3:] == [
        {"to": [{"podSelector": {"matchLabels": names.ENGINES}}]},
        {"to": [{"podSelector": {"matchLabels": ROUTER}}], "ports": [{"protocol": "TCP", "port": 9090}]},
        {"to": [{"podSelector": {"matchLabels": HOSTS}}], "ports": [{"protocol": "TCP", "port": 9100}]},
    ]
    measured = one("NetworkPolicy", "page-hosts")["spec"]
    assert measured["podSelector"] == {"matchLabels": HOSTS} and measured["ingress"][0]["ports"][0]["port"] == 9100
    assert asks["podSelector"] == {"matchLabels": names.ENGINES} and asks["ingress"][0]["ports"][0]["port"] == 20101
    pod = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert heard["podSelector"]["matchLabels"].items() <= pod.items()


def test_nothing_changes_where_nothing_changed_and_facts_start_no_pod_anew(tmp_path: Path) -> None:
    other = tmp_path / "site.json"
    other.write_text(json.dumps(json.loads(FACTS.read_text()) | {"problem": "x"}))
    assert objects() == objects()
    first, second = objects(), objects(other)
    assert [item["metadata"]["name"] for item, again in zip(first, second, strict=True) if item != again] == [
        "page-site"
    ]


def test_no_map_is_near_what_an_object_may_be() -> None:
    for item in case.of_kind(objects(), "ConfigMap"):
        assert len(json.dumps(item)) < 400_000, item["metadata"]["name"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """As the pod has it: the program and the files out of their ConfigMaps, by the oldest Python that is promised."""
    program = tmp_path / "page"
    program.write_bytes(base64.b64decode(one("ConfigMap", "page-program")["binaryData"]["page"]))
    folder = tmp_path / "files"
    folder.mkdir()
    for name, text in one("ConfigMap", "page-files")["data"].items():
        (folder / name).write_text(text)
    port = free_port()
    words = ["--folder", str(folder), "--namespace", "x", "--address", "127.0.0.1", "--port", str(port)]
    command = [oldest_python(), "-I", "-B", "-W", "error", str(program), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout and "listens" in running.stdout.readline()
        yield port, running
        running.terminate()


def ask(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_it_runs_as_the_pod_runs_it_and_ends_when_it_is_told(started: tuple[int, subprocess.Popen[str]]) -> None:
    port, running = started
    for _ in range(200):
        assert ask(port, "/")[0] == 200 and ask(port, "/page/page.js")[0] == 200
    status, body = ask(port, "/page/data/status.json")
    assert status == 503 and b"no access to the cluster's API" in body
    lines = Path(f"/proc/{running.pid}/status").read_text().splitlines()
    most = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    assert most < 64 * 1024, "half of its limit, and a quarter more"
    begun = time.monotonic()
    running.terminate()
    assert running.wait(5) == 0 and time.monotonic() - begun < 4
