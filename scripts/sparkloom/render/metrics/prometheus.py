"""What is scraped, by whichever Prometheus; and a small one for a site that has none: one pod, history kept by size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.onnode.rank import exposition
from sparkloom.onnode.waker import main as program
from sparkloom.onnode.waker import server
from sparkloom.render import template
from sparkloom.render.manifests import names, pod_defaults
from sparkloom.render.metrics import alerts, labels, series

NOBODY = 65534
SPARE = 2  # the disk that is asked for, over what is kept: blocks are joined beside the old ones


def objects(cluster: Cluster, image: str, keep_gb: int) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    texts = files(cluster)
    return template.objects(
        "manifests/prometheus",
        image=image,
        namespace=cluster.namespace,
        labels={**labels.OURS, **labels.PROMETHEUS},
        selector=labels.PROMETHEUS,
        annotations=names.read_at_start(*texts.values()),
        files=texts,
        keep_gb=keep_gb,
        disk_gib=keep_gb * SPARE,
        port=labels.PROMETHEUS_PORT,
        sparks=sorted(node.kubernetes_node for node in cluster.nodes),
        unprivileged=pod_defaults.unprivileged(NOBODY, fsGroup=NOBODY),
        locked=pod_defaults.locked(),
        readers={labels.READER: "true"},
    )


def files(cluster: Cluster) -> dict[str, str]:
    scraped = yaml.safe_dump(config(cluster), sort_keys=False, width=10_000)
    return {"prometheus.yml": scraped, "rules.yml": alerts.text(alerts.of(cluster))}


EVERY = "15s"
SAMPLES = 20_000  # of one page: an engine has some 2,000
NODE = "__meta_kubernetes_pod_node_name"
IP = "__meta_kubernetes_pod_ip"

Rule = dict[str, Any]  # of relabelling, in Prometheus' own words


class Job(NamedTuple):
    name: str
    pods: Mapping[str, str]  # labels that pick them
    port: int
    path: str


def jobs() -> tuple[Job, ...]:
    ranks = Job(series.RANKS, names.ENGINES, ports.PROBES, exposition.PATH)
    engines = Job(series.ENGINES, {**names.ENGINES, names.RANK: "0"}, ports.PROBES, exposition.ENGINE)
    router = Job(series.ROUTER, labels.ROUTER, labels.ROUTER_PORT, "/metrics")
    waker = Job(series.WAKER, labels.WAKER, program.PORT, server.METRICS)
    exporters = Job(series.HOSTS, labels.HOSTS, labels.HOSTS_PORT, "/metrics")
    return (ranks, engines, router, waker, exporters)


def label(name: str) -> str:
    """A pod's label as Prometheus finds it."""
    return "__meta_kubernetes_pod_label_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)


def node_rules(cluster: Cluster) -> list[Rule]:
    """The cluster's name of a node, and the inventory's where it has another."""
    named = [{"source_labels": [NODE], "target_label": "node"}]
    others = [node for node in cluster.nodes if node.kubernetes_node != node.name]
    return named + [
        {
            "source_labels": [NODE],
            "regex": re.escape(node.kubernetes_node),
            "target_label": "node",
            "replacement": node.name,
        }
        for node in others
    ]


def rules(job: Job, cluster: Cluster) -> list[Rule]:
    """Each pod once: one with several ports is found as often, and the same target counts once."""
    picked = [
        {"source_labels": [label(name)], "regex": re.escape(value), "action": "keep"}
        for name, value in sorted(job.pods.items())
    ]
    common = [
        {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
        {"source_labels": [IP], "regex": "(.+)", "target_label": "__address__", "replacement": f"$1:{job.port}"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
    ]
    return [*picked, *common, *(node_rules(cluster) if job.name in (series.HOSTS, series.ROUTER) else [])]


def config(cluster: Cluster) -> dict[str, Any]:
    """Of our own Prometheus."""
    scraped = [
        template.one(
            "metrics/scraped",
            name=job.name,
            path=job.path,
            samples=SAMPLES,
            namespace=cluster.namespace,
            rules=rules(job, cluster),
        )
        for job in jobs()
    ]
    return template.one("metrics/scrape", every=EVERY, site=cluster.name, scraped=scraped)


def pod_monitors(cluster: Cluster, namespace: str, more: Mapping[str, str]) -> list[dict[str, Any]]:
    """For an operator; `more`: labels that its Prometheus asks for."""
    return [_pod_monitor(job, cluster, namespace, more) for job in jobs()]


def _pod_monitor(job: Job, cluster: Cluster, namespace: str, more: Mapping[str, str]) -> dict[str, Any]:
    relabelled = [_camel(rule) for rule in rules(job, cluster) if "phase" not in str(rule["source_labels"])]
    own = [rule for rule in relabelled if rule.get("action") != "keep"]
    own.append({"targetLabel": "job", "replacement": job.name})
    return template.one(
        "metrics/pod_monitor",
        metadata=labels.meta(job.name, namespace, dict(more)),
        namespace=cluster.namespace,
        pods=dict(job.pods),
        samples=SAMPLES,
        path=job.path,
        every=EVERY,
        rules=own,
    )


def _camel(rule: Rule) -> Rule:
    return {re.sub(r"_(.)", lambda found: found[1].upper(), key): value for key, value in rule.items()}


def services(cluster: Cluster) -> list[dict[str, Any]]:
    """For a Prometheus without an operator."""
    return [_service(job, cluster.namespace) for job in jobs()]


def _service(job: Job, namespace: str) -> dict[str, Any]:
    told = {"scrape": "true", "port": str(job.port), "path": job.path}
    annotations = {f"prometheus.io/{name}": value for name, value in told.items()}
    metadata = labels.meta(job.name, namespace, annotations=annotations)
    return template.one("metrics/service", metadata=metadata, pods=dict(job.pods), port=job.port)


def policies(namespace: str, peers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who may ask for these pages: the Prometheus that was found or installed. Nobody else is let in by them.

    One object for each way of a pod, as with the engines: of one with both directions K3s' controller lets pass more.
    """
    made = [
        _policy(f"{job.name}-heard", namespace, job.pods, ingress=_heard(job, peers))
        for job in jobs()
        if job.name != series.ENGINES
    ]
    return [*made, _policy(f"{series.HOSTS}-out", namespace, labels.HOSTS, egress=[])]


def _heard(job: Job, peers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nothing where nobody scrapes: to Kubernetes an empty list of peers means everybody."""
    return [{"from": list(peers), "ports": pod_defaults.tcp(job.port)}] if peers else []


def _policy(name: str, namespace: str, pods: Mapping[str, str], **ways: list[dict[str, Any]]) -> dict[str, Any]:
    """`ingress` or `egress`. Without rules nobody passes, and the key is left out: the API server keeps an empty list
    as something else, and each apply would change it."""
    spec = {"podSelector": {"matchLabels": dict(pods)}, "policyTypes": [way.capitalize() for way in ways]}
    rules = {way: listed for way, listed in ways.items() if listed}
    return names.manifest("networking.k8s.io/v1", "NetworkPolicy", labels.meta(name, namespace), spec={**spec, **rules})
