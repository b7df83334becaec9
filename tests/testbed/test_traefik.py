"""When the rack's Traefik counts as there: as it was last described, ready, and at its node's address."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.beds.rack import cluster, traefik_install, traefik_objects


@pytest.fixture
def cluster_says(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    deployment = {
        "kind": "Deployment",
        "metadata": {"annotations": {traefik_install.MADE_OF: traefik_install.recipe()}},
        "status": {"readyReplicas": 1},
    }
    service = {"kind": "Service", "metadata": {}, "status": {"loadBalancer": {"ingress": [{"ip": "172.19.0.5"}]}}}
    found: dict[str, Any] = {"items": [service, deployment]}
    monkeypatch.setattr(cluster, "kubectl", lambda *words, **_: json.dumps(found))
    monkeypatch.setattr(cluster, "nodes", lambda: {traefik_objects.NODE: {"ip": "172.19.0.5"}})
    return found


def test_it_is_there(cluster_says: dict[str, Any]) -> None:
    assert traefik_install.steps()[0].done() is True


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: found["items"].pop(),
        lambda found: found["items"][1]["metadata"]["annotations"].update({traefik_install.MADE_OF: "older"}),
        lambda found: found["items"][1]["metadata"].pop("annotations"),
        lambda found: found["items"][1]["status"].clear(),
        lambda found: found["items"][0]["status"].update(loadBalancer={}),
        lambda found: found["items"][0]["status"]["loadBalancer"]["ingress"][0].update(ip="172.19.0.2"),
    ],
    ids=["no deployment", "of another build", "of someone else", "not ready", "without address", "node moved"],
)
def test_it_is_brought_again(cluster_says: dict[str, Any], spoil: Any) -> None:
    spoil(cluster_says)
    assert traefik_install.steps()[0].done() is False


def test_an_empty_cluster_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "kubectl", lambda *words, **_: "")
    assert traefik_install.steps()[0].done() is False
