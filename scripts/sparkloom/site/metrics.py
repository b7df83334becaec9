"""Which Prometheus and which exporters a cluster has already, and what of ours it is given, or no longer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names
from sparkloom.render.metrics import alerts, dashboards, exporter, labels, prometheus
from sparkloom.site.client import or_none, selector
from sparkloom.site.objects import GONE, Taker

Wish = Literal["auto", "install", "none"]
MONITORING = "monitoring.coreos.com"
PROGRAM = re.compile(r"(^|/)prometheus(/prometheus)?(:|@|$)")  # an image of Prometheus itself, of whichever registry
EXPORTER = re.compile(r"(^|/)(prometheus-)?node[-_]exporter(:|@|$)")
SPACE = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Scraper:
    """A Prometheus that is there. `how`: what makes it scrape us."""

    namespace: str
    name: str
    how: Literal["operator", "annotations"]
    pods: Mapping[str, str]  # labels of its own pods
    monitors: Mapping[str, str] = field(default_factory=dict)  # labels that it wants of PodMonitors
    rules: Mapping[str, str] = field(default_factory=dict)  # and of PrometheusRules
    own_namespace: bool = False  # it looks in its own namespace only

    def __str__(self) -> str:
        return f"{self.name} in {self.namespace} (by {'its operator' if self.how == 'operator' else 'annotations'})"


@dataclass(frozen=True, slots=True)
class Found:
    scrapers: tuple[Scraper, ...] = ()
    exporters: tuple[str, ...] = ()  # namespace/name of others' node-exporters
    unclear: tuple[str, ...] = ()  # a Prometheus that is there and whose wishes cannot be met


def look(core: Any, namespace: str) -> Found:
    """Reads only. A cluster without the operator does not know its kinds."""
    from kubernetes import client

    custom, apps = client.CustomObjectsApi(core.api_client), client.AppsV1Api(core.api_client)
    operated = or_none(lambda: custom.list_cluster_custom_object(MONITORING, "v1", "prometheuses")) or {"items": []}
    sets = [*apps.list_deployment_for_all_namespaces().items, *apps.list_stateful_set_for_all_namespaces().items]
    daemons = apps.list_daemon_set_for_all_namespaces().items
    return judge(operated["items"], [_workload(one) for one in sets], [_workload(one) for one in daemons], namespace)


def _workload(one: Any) -> dict[str, Any]:
    return {
        "namespace": one.metadata.namespace,
        "name": one.metadata.name,
        "ours": all((one.metadata.labels or {}).get(key) == value for key, value in names.PART_OF.items()),
        "owned": [owner.kind for owner in one.metadata.owner_references or []],
        "images": [container.image for container in one.spec.template.spec.containers],
        "pods": dict(one.spec.selector.match_labels or {}),
    }


def judge(
    operated: list[dict[str, Any]], sets: list[dict[str, Any]], daemons: list[dict[str, Any]], namespace: str
) -> Found:
    scrapers, unclear = [], []
    for one in operated:
        taken = _operated(one, namespace)
        if isinstance(taken, str):
            unclear.append(taken)
        else:
            scrapers.append(taken)
    for one in sets:
        if not one["ours"] and "Prometheus" not in one["owned"] and any(map(PROGRAM.search, one["images"])):
            scrapers.append(Scraper(one["namespace"], one["name"], "annotations", one["pods"]))
    exporters = [one for one in daemons if not one["ours"] and any(map(EXPORTER.search, one["images"]))]
    return Found(tuple(scrapers), tuple(f"{one['namespace']}/{one['name']}" for one in exporters), tuple(unclear))


def _operated(one: dict[str, Any], namespace: str) -> Scraper | str:
    """A Prometheus of the operator, with the labels that it wants; or why it will not take our monitors."""
    space, name, spec = one["metadata"]["namespace"], one["metadata"]["name"], one.get("spec", {})
    wanted: dict[str, Mapping[str, str]] = {}
    for kind in ("podMonitor", "rule"):
        selector = spec.get(f"{kind}Selector")
        if selector is None or selector.get("matchExpressions"):
            found = "no" if selector is None else "a selector by expressions for"
            cure = f"write spec.{kind}Selector: {{}} there, or metrics_prometheus: install"
            return f"{name} in {space} has {found} {kind}Selector; expected one by labels, or {{}}: {cure}"
        wanted[kind] = selector.get("matchLabels") or {}
    pods = {labels.NAME: "prometheus", "operator.prometheus.io/name": name}
    places = [_takes(spec.get(f"{kind}NamespaceSelector"), namespace) for kind in ("podMonitor", "rule")]
    return Scraper(space, name, "operator", pods, wanted["podMonitor"], wanted["rule"], not all(places))


def _takes(selector: Mapping[str, Any] | None, namespace: str) -> bool:
    """Whether a selector of namespaces takes ours; none at all means the Prometheus' own."""
    if selector is None or selector.get("matchExpressions"):
        return False
    ours = {SPACE: namespace, **names.PART_OF}
    return all(ours.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def plan(
    cluster: Cluster, found: Found, wish: Wish, images: tuple[str, str], keep_gb: int
) -> tuple[list[dict[str, Any]], str]:
    """Objects in the order to apply them, and who scrapes. `images`: of the node-exporter and of Prometheus."""
    scraper = found.scrapers[0] if found.scrapers and wish == "auto" else None
    another = bool(found.exporters) and scraper is not None
    objects = exporter.objects(cluster, images[0], another=another)
    if wish == "install":
        peers = [{"podSelector": {"matchLabels": dict(labels.PROMETHEUS)}}]
        objects += prometheus.objects(cluster, images[1], keep_gb)
        told = f"a Prometheus of our own in {cluster.namespace}, which keeps {keep_gb} GB"
    elif scraper:
        peers = [_peer(scraper)]
        objects += _for(scraper, cluster)
        told = f"{scraper} scrapes"
    else:
        peers = []
        told = "nobody scrapes: no Prometheus was found" if wish == "auto" else "nobody scrapes, as was asked"
    objects += prometheus.policies(cluster.namespace, peers)
    objects += dashboards.config_maps(cluster)
    told += f"; beside the node-exporter {', '.join(found.exporters)}" if another else ""
    told += "".join(f"\n{text}" for text in (found.unclear if wish == "auto" else ()))
    return objects, told


def _for(scraper: Scraper, cluster: Cluster) -> list[dict[str, Any]]:
    if scraper.how == "annotations":
        return prometheus.services(cluster)
    space = scraper.namespace if scraper.own_namespace else cluster.namespace
    metadata = labels.meta(alerts.GROUP, space, dict(scraper.rules))
    spec = {"groups": alerts.groups(alerts.of(cluster))}
    rule = names.manifest(f"{MONITORING}/v1", "PrometheusRule", metadata, spec=spec)
    return [*prometheus.pod_monitors(cluster, space, scraper.monitors), rule]


def _peer(scraper: Scraper) -> dict[str, Any]:
    if not scraper.pods:
        message = f"the pods of {scraper} have no labels by which a policy could name them; metrics_prometheus: install"
        raise InputError.single("the cluster", message, rule="prometheus")
    return {
        "namespaceSelector": {"matchLabels": {SPACE: scraper.namespace}},
        "podSelector": {"matchLabels": dict(scraper.pods)},
    }


def gone(taker: Taker, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects of ours that an earlier choice made and this one does not: named, for who takes them away.

    The history of a Prometheus (its volume) stays until the namespace goes.
    """
    kept = {(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in wanted}
    there = [
        (api, kind, str(one.metadata.namespace), str(one.metadata.name))
        for api, kind in GONE["metrics"]
        for one in taker.found((api, kind), labels=selector(labels.OURS))
    ]
    return [
        {"apiVersion": api, "kind": kind, "metadata": {"namespace": space, "name": name}}
        for api, kind, space, name in there
        if (kind, space, name) not in kept and (space == taker.namespace or api.startswith(MONITORING))
    ]


def forget(taker: Taker, left: list[dict[str, Any]]) -> None:
    for one in left:
        taker.remove((one["apiVersion"], one["kind"]), **one["metadata"])


def drift(left: list[dict[str, Any]]) -> list[dict[str, str]]:
    """As the doctor says it."""
    named = (f"{one['kind']} {one['metadata']['name']}" for one in left)
    return [{"what": name, "found": "there", "expected": "gone: nothing asks for it any more"} for name in named]
