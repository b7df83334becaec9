"""Which Prometheus is found, and what an earlier choice left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.site import metrics
from sparkloom.site.objects import Taker

CLUSTER = case.cluster(None)
IMAGES = ("exporter:v1", "prometheus:v1")


def workload(name: str, image: str, *, ours: bool = False, owned: str = "") -> dict[str, Any]:
    return {"namespace": "monitoring", "name": name, "ours": ours, "owned": [owned] if owned else [],
            "images": ["sidecar:1", image], "pods": {"app": name}}  # fmt: skip


def operated(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "monitoring", "name": "k8s"}, "spec": spec}


OPEN: dict[str, Any] = {
    "podMonitorSelector": {}, "ruleSelector": {}, "podMonitorNamespaceSelector": {}, "ruleNamespaceSelector": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        ("quay.io/prometheus/prometheus:v3.5.0", True),
        ("docker.io/prom/prometheus:v2.55.1", True),
        ("registry.lan:5000/mirror/prometheus@sha256:" + "0" * 64, True),
        ("prom/prometheus", True),
        ("quay.io/prometheus/alertmanager:v0.28.0", False),
        ("quay.io/prometheus/node-exporter:v1.9.1", False),
        ("quay.io/prometheus-operator/prometheus-operator:v0.80.0", False),
        ("quay.io/prometheus-operator/prometheus-config-reloader:v0.80.0", False),
    ],
)
def test_a_prometheus_is_known_by_its_image(image: str, is_one: bool) -> None:
    found = metrics.judge([], [workload("p", image)], [], "sparkloom")
    assert bool(found.scrapers) == is_one
    assert not metrics.judge([], [workload("p", image, ours=True)], [], "sparkloom").scrapers


@pytest.mark.parametrize(
    "image", ["quay.io/prometheus/node-exporter:v1.9.1", "prom/node-exporter@sha256:0", "x/node_exporter:1",
              "bitnami/node-exporter:1"],
)  # fmt: skip
def test_another_exporter_is_known_by_its_image(image: str) -> None:
    found = metrics.judge([], [], [workload("n", image), workload("g", "nvidia/dcgm-exporter:4")], "sparkloom")
    assert found.exporters == ("monitoring/n",)


def test_an_operator_s_own_pods_are_not_a_second_one() -> None:
    sets = [workload("prometheus-k8s", "quay.io/prometheus/prometheus:v3", owned="Prometheus")]
    found = metrics.judge([operated(**OPEN)], sets, [], "sparkloom")
    assert [(one.how, one.own_namespace) for one in found.scrapers] == [("operator", False)]
    assert found.scrapers[0].pods["operator.prometheus.io/name"] == "k8s"


def test_its_selectors_say_which_labels_and_where() -> None:
    wanted = {"matchLabels": {"release": "kube-prometheus-stack"}}
    spec = {**OPEN, "podMonitorSelector": wanted, "ruleSelector": wanted}
    (one,) = metrics.judge([operated(**spec)], [], [], "sparkloom").scrapers
    assert one.monitors == one.rules == {"release": "kube-prometheus-stack"} and not one.own_namespace
    del spec["podMonitorNamespaceSelector"]
    (one,) = metrics.judge([operated(**spec)], [], [], "sparkloom").scrapers
    objects, _ = metrics.plan(CLUSTER, metrics.Found((one,)), "auto", IMAGES, 4)
    ours = [o for o in objects if o["apiVersion"].startswith(metrics.MONITORING)]
    assert one.own_namespace and {o["metadata"]["namespace"] for o in ours} == {"monitoring"}
    spec["podMonitorNamespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "sparkloom"}}
    assert not metrics.judge([operated(**spec)], [], [], "sparkloom").scrapers[0].own_namespace


@pytest.mark.parametrize("selector", [None, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}])
def test_one_that_will_not_take_us_is_named_with_what_to_write(selector: Any) -> None:
    found = metrics.judge([operated(**{**OPEN, "podMonitorSelector": selector})], [], [], "sparkloom")
    assert not found.scrapers
    _, told = metrics.plan(CLUSTER, found, "auto", IMAGES, 4)
    assert "spec.podMonitorSelector: {}" in told and "metrics_prometheus: install" in told


def test_pods_that_no_policy_can_name_are_refused() -> None:
    bare = metrics.Scraper("x", "p", "annotations", {})
    with pytest.raises(InputError, match="metrics_prometheus: install"):
        metrics.plan(CLUSTER, metrics.Found((bare,)), "auto", IMAGES, 4)


def test_the_play_says_who_scrapes() -> None:
    some = metrics.Found((metrics.Scraper("x", "p", "annotations", {"a": "b"}),))
    assert "p in x" in metrics.plan(CLUSTER, some, "auto", IMAGES, 4)[1]
    assert "no Prometheus was found" in metrics.plan(CLUSTER, metrics.Found(), "auto", IMAGES, 4)[1]
    assert "as was asked" in metrics.plan(CLUSTER, some, "none", IMAGES, 4)[1]
    assert "4 GB" in metrics.plan(CLUSTER, some, "install", IMAGES, 4)[1]


class Cluster:
    """The dynamic client over made-up objects; it knows no operator."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self.objects, self.resources = objects, self
        self.deleted: list[tuple[str, str]] = []

    def get(self, *, api_version: str, kind: str) -> Any:
        if api_version.startswith(metrics.MONITORING):
            raise ResourceNotFoundError(kind)
        mine = [one for one in self.objects if one["kind"] == kind]
        items = [SimpleNamespace(metadata=SimpleNamespace(**one["metadata"])) for one in mine]

        def delete(name: str, namespace: str, body: Any) -> None:
            if not any(one["metadata"]["name"] == name for one in mine):
                raise NotFoundError(
                    SimpleNamespace(status=404, reason="", data="", getheaders=dict, headers={}, body="")
                )
            self.deleted.append((kind, name))

        return SimpleNamespace(get=lambda label_selector: SimpleNamespace(items=items), delete=delete)


def taker(there: Cluster, *, dry: bool = False) -> Taker:
    return Taker(there, "sparkloom", dry, print)


def test_what_an_earlier_choice_made_goes_and_nothing_else() -> None:
    before, _ = metrics.plan(CLUSTER, metrics.Found(), "install", IMAGES, 4)
    wanted, _ = metrics.plan(CLUSTER, metrics.Found(), "auto", IMAGES, 4)
    there = Cluster(before)
    left = metrics.gone(taker(there), wanted)
    kinds = {(one["kind"], one["metadata"]["name"]) for one in left}
    assert ("Deployment", "prometheus") in kinds and ("Role", "prometheus") in kinds
    assert ("DaemonSet", "sparkloom-hosts") not in kinds and "PersistentVolumeClaim" not in {k for k, _ in kinds}
    assert metrics.gone(taker(Cluster(wanted)), wanted) == []
    metrics.forget(taker(there, dry=True), left)
    assert there.deleted == []
    metrics.forget(taker(there), left)
    assert set(there.deleted) == kinds
    assert all(one["expected"].startswith("gone") for one in metrics.drift(left))


def test_of_another_namespace_nothing_goes() -> None:
    theirs = [{"kind": "Service", "metadata": {"namespace": "other", "name": "sparkloom-ranks"}}]
    assert metrics.gone(taker(Cluster(theirs)), []) == []
