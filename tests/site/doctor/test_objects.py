"""What an apply would change is asked of an API server: here of one on loopback that keeps what it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiClient, ApiException, Configuration

from sparkloom.site.client import Client
from sparkloom.site.doctor import drift, events, roles
from sparkloom.site.objects import Api

KINDS = {
    "/api/v1": [{"name": "services", "kind": "Service", "namespaced": True},
                {"name": "services/status", "kind": "Service", "namespaced": True},
                {"name": "namespaces", "kind": "Namespace", "namespaced": False}],
    "/apis/apps/v1": [{"name": "statefulsets", "kind": "StatefulSet", "namespaced": True}],
    "/apis/k8s.cni.cncf.io/v1": [
        {"name": "network-attachment-definitions", "kind": "NetworkAttachmentDefinition", "namespaced": True}],
}  # fmt: skip
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}, "spec": {"port": 1}}


class Server:
    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.refuses = 0


@pytest.fixture
def server() -> Iterator[tuple[Server, Api]]:
    kept = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            kept.asked.append((self.command, self.path))
            self._say({"resources": KINDS[path]} if path in KINDS else kept.there.get(path))

        def do_PATCH(self) -> None:
            kept.asked.append((self.command, self.path))
            wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            there = kept.there[self.path.partition("?")[0]]
            moved = {**there["metadata"], "resourceVersion": "2", "managedFields": ["new"]}
            self._say({**there, **wanted, "metadata": moved, "status": {"x": 2}})

        def _say(self, told: Any) -> None:
            body = json.dumps(told or {}).encode()
            self.send_response(kept.refuses or (200 if told else 404))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    configuration = Configuration(host=f"http://127.0.0.1:{listening.server_address[1]}")
    yield kept, Api(Client(SimpleNamespace(api_client=ApiClient(configuration)), "n"))
    listening.shutdown()


def test_one_that_is_as_applied_differs_in_nothing_but_what_moves_by_itself(server: tuple[Server, Api]) -> None:
    kept, api = server
    metadata = {"name": "s", "namespace": "n", "resourceVersion": "1", "managedFields": ["old"]}
    kept.there["/api/v1/namespaces/n/services/s"] = {**SERVICE, "metadata": metadata, "status": {"x": 1}}
    assert api.differing([SERVICE]) == []
    (asked,) = [path for method, path in kept.asked if method == "PATCH"]
    assert asked.partition("?")[0] == "/api/v1/namespaces/n/services/s"
    assert {"dryRun=All", "fieldManager=sparkloom", "force=true"} == set(asked.partition("?")[2].split("&"))


def test_one_that_somebody_changed_is_told_by_its_field(server: tuple[Server, Api]) -> None:
    kept, api = server
    kept.there["/api/v1/namespaces/n/services/s"] = {**SERVICE, "spec": {"port": 2}}
    (found,) = api.differing([SERVICE])
    (event,) = events.of_task("cluster", roles.own("multus", "main", "Apply"), {"changed": True, "differing": [found]})
    assert drift.items(event) == [("Service s spec.port", "2", "1")]


def test_how_many_pods_a_group_on_demand_has_is_no_drift(server: tuple[Server, Api]) -> None:
    """Its image is; and of a group that is to run always, so is that it does not."""
    kept, api = server
    labels = {"name": "g-rank0", "namespace": "n", "labels": {"sparkloom/profile": "g"}}
    wanted = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": labels, "spec": {"replicas": 1, "image": "a"}}
    where = "/apis/apps/v1/namespaces/n/statefulsets/g-rank0"
    kept.there[where] = {**wanted, "spec": {"replicas": 0, "image": "a"}}
    assert api.differing([wanted], {"g"}) == []
    assert [one["name"] for one in api.differing([wanted], {"other"})] == ["g-rank0"]
    kept.there[where] = {**wanted, "spec": {"replicas": 0, "image": "b"}}
    (found,) = api.differing([wanted], {"g"})
    assert found["diff"]["after"]["spec"] == {"replicas": 0, "image": "a"}


def test_one_that_is_not_there_and_one_of_an_unknown_kind_are_missing_and_nothing_is_written(
    server: tuple[Server, Api],
) -> None:
    kept, api = server
    route = {"apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute", "metadata": {"name": "r", "namespace": "n"}}
    attachment = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                  "metadata": {"name": "rail-a-vf0", "namespace": "n"}}  # fmt: skip
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    found = api.differing([SERVICE, route, attachment, space])
    assert [one["name"] for one in found] == ["s", "r", "rail-a-vf0", "n"] and not any(one["diff"] for one in found)
    assert {method for method, _ in kept.asked} == {"GET"}
    assert ("GET", "/api/v1/namespaces/n") in kept.asked


def test_a_server_that_refuses_is_no_missing_object(server: tuple[Server, Api]) -> None:
    kept, api = server
    kept.refuses = 403
    with pytest.raises(ApiException):
        api.differing([SERVICE])
