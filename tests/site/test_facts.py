"""What this machine tells the page of a site: plan, proofs, last measurements; and what it says where it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base import repository
from sparkloom.onnode.kube import Unreached
from sparkloom.site import ansible, client, facts, now
from sparkloom.site.tasks import cluster as tasks
from tests import inventories
from tests.inventories import GLM, OSS, THREE
from tests.onnode.now.recorded import FACTS
from tests.plugins import loading


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder build/<site> of somebody who works in a folder of his own."""
    monkeypatch.setattr(repository, "WORK", tmp_path / "work")
    folder = tmp_path / "work" / "build" / "fleet"
    (folder / "bench").mkdir(parents=True)
    return folder


def bench(folder: Path, at: str, profile: str, **more: Any) -> None:
    level = {"concurrency": 1, "ok": 1, "requests": 1, "decode_tok_s": 30.0, "sum_tok_s": 30.0, "wall_tok_s": 29.0}
    more_of_it = {"ttft_ms": {"p50": 400.0}, "guard": {"verdict": "ok"}, "accept_length": None, "per_request": [1] * 50}
    levels = [level | more_of_it]
    data = {
        "complete": True,
        "valid": True,
        "levels": levels,
        "provenance": {"profile": profile, "measured": at},
        **more,
    }
    (folder / "bench" / f"bench-m-{at}.json").write_text(json.dumps(data))


def test_they_have_the_shape_that_the_recorded_site_has(kept: Path, tmp_path: Path) -> None:
    told, recorded = facts.planned(inventories.serving(tmp_path, THREE)).facts(), json.loads(FACTS.read_text())
    assert list(told) == list(recorded) and told["nodes"] == recorded["nodes"]
    assert [set(one) for one in told["groups"]] == [set(one) for one in recorded["groups"]]
    assert [one["names"] for one in told["groups"]] == [one["names"] for one in recorded["groups"]]
    assert all(0 < one["takes_gib"] < 121.6 for one in told["groups"]) and told["gauges"] == recorded["gauges"]


def test_the_last_measurements_are_among_them(kept: Path, tmp_path: Path) -> None:
    bench(kept, "20261124T200000Z", GLM)
    bench(kept, "20261124T210000Z", GLM, valid=False)
    bench(kept, "20261124T220000Z", GLM, complete=False)
    bench(kept, "20261124T230000Z", OSS)
    (kept / "bench" / "bench-z-20261125T000000Z.json").write_text("{half")
    report = {"time": "t", "verdict": "v", "pairs": [
        {"client": "a", "server": "b", "sum_gbit": 190.0, "verdict": "ok",
         "rails": {"a": {"gbit": 95.0, "said": "much", "latency_us": 2.0}}}]}  # fmt: skip
    (kept / "fabric_check.json").write_text(json.dumps(report))
    told = facts.planned(inventories.serving(tmp_path, THREE)).facts()
    glm, oss, chat = (one["bench"] for one in told["groups"])
    assert glm["measured"] == "20261124T210000Z" and glm["valid"] is False and oss["valid"] and chat is None
    assert "per_request" not in glm["levels"][0] and glm["levels"][0]["ttft_p50_ms"] == 400.0
    assert told["fabric"]["pairs"][0]["rails"] == {"a": {"gbit": 95.0}}


def test_a_list_that_does_not_fit_leaves_its_groups_without_a_place_and_says_so(kept: Path, tmp_path: Path) -> None:
    listed = "serve:\n" + "".join(f"  - {{profile: {GLM}, name: g{n}, alias: a{n}}}\n" for n in range(3))
    told = facts.planned(inventories.serving(tmp_path, listed)).facts()
    assert [(one["name"], one["names"], one["nodes"]) for one in told["groups"]] == [
        (f"g{n}", [f"a{n}", f"g{n}"], []) for n in range(3)
    ]
    assert "does not pack" in told["problem"] and len(told["nodes"]) == 4


def test_a_site_with_one_profile_has_one_group(kept: Path) -> None:
    (one,) = facts.planned(None).facts()["groups"]
    assert one["profile"] == "nvidia--nemotron-3-super-120b-a12b-nvfp4--ep4" and len(one["nodes"]) == 4


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [({}, False), ({"serve": [OSS]}, True), ({"client_keys": []}, True), ({"serve": []}, True)],
)
def test_a_site_with_a_list_or_with_keys_has_a_page(
    kept: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, Any], wanted: bool
) -> None:
    cluster = case.cluster(None)
    given = {"cluster": {"name": "gb10", "namespace": "sparkloom", "management_interface": "eth0"},
             "fabric": {"rails": []}, "nodes": [{"name": "spark1"}]}  # fmt: skip
    monkeypatch.setattr(ansible, "cluster", lambda task_vars: cluster)
    monkeypatch.setattr(ansible, "inventory", lambda task_vars: given)
    monkeypatch.setattr(client, "of", lambda cluster: NS(api_addresses=lambda: [("10.0.0.1", 6443)]))
    told = tasks.page(loading.context({"profile": OSS, **variables}), "python:3")
    assert told["wanted"] is wanted and bool(told["objects"]) is wanted
    if wanted:
        (site,) = [item for item in told["objects"] if item["metadata"]["name"] == "page-site"]
        assert json.loads(site["data"]["site.json"])["site"] == "gb10"


def test_where_pods_reach_the_api_is_asked_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes import client as library

    slices = NS(items=[NS(endpoints=[NS(addresses=["192.168.1.12"]), NS(addresses=["192.168.1.11"])],
                          ports=[NS(port=6443)])])  # fmt: skip
    discovery = NS(list_namespaced_endpoint_slice=lambda namespace, label_selector: slices)
    monkeypatch.setattr(library, "DiscoveryV1Api", lambda api: discovery)
    service = NS(spec=NS(cluster_ip="10.43.0.1", ports=[NS(port=443)]))
    core = NS(api_client=None, read_namespaced_service=lambda name, namespace: service)
    found = client.Client(core, "sparkloom").api_addresses()
    assert found == [("10.43.0.1", 443), ("192.168.1.11", 6443), ("192.168.1.12", 6443)]


class Api:
    """As much of the Kubernetes library's client as a look asks."""

    configuration = NS(retries=None)

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, []

    def call_api(self, path: str, method: str, **options: Any) -> Any:
        self.asked.append((path, method, options["query_params"], options["header_params"], options["auth_settings"]))
        if isinstance(self.answer, Exception):
            raise self.answer
        return NS(data=self.answer)


def test_from_here_the_api_is_asked_with_the_kubeconfig_s_own_access() -> None:
    api = Api(b'{"items": [1]}')
    reached = now.FromHere(client.Client(NS(api_client=api), "sparkloom"))
    assert reached.api("/api/v1/nodes", {"a": "b"}, "application/json") == {"items": [1]}
    assert api.asked == [("/api/v1/nodes", "GET", [("a", "b")], {"Accept": "application/json"}, ["BearerToken"])]


def test_from_here_what_goes_wrong_is_one_line() -> None:
    from kubernetes.client import ApiException
    from urllib3.exceptions import MaxRetryError

    for answer, words in ((ApiException(403, "Forbidden"), "403"), (b"<html>", "no JSON"),
                          (MaxRetryError(None, "/", OSError("refused")), "cannot be reached")):  # fmt: skip
        reached = now.FromHere(client.Client(NS(api_client=Api(answer)), "sparkloom"))
        with pytest.raises(Unreached, match=words):
            reached.api("/api/v1/nodes", {}, "application/json")


def test_from_here_a_supervisor_is_asked_by_a_command_in_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens at its pod's own address: through a forwarded port, as on the old code, it is never reached."""
    monkeypatch.setattr(client.Client, "ask", lambda self, pod, words: json.dumps([pod, words[-1]]))
    pod = NS(metadata=NS(name="glm-rank0-0"))
    told = now.FromHere(client.Client(NS(), "sparkloom")).ask(pod, 20101, "/status")
    assert json.loads(told) == ["glm-rank0-0", "status"]
