"""What is applied to the cluster, waited for there, and judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from sparkloom.render import manifests
from sparkloom.render.manifests import gpu, multus
from sparkloom.render.manifests import page as page_objects
from sparkloom.site import ansible, client, facts, workload
from sparkloom.site import metrics as site_metrics
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import gpus as judged_gpus
from sparkloom.site.checks import networks as judged_networks
from sparkloom.site.checks import report
from sparkloom.site.objects import Taker


def wait(
    context: Context,
    objects: Sequence[Data],  # what was applied
    timeout: float,  # seconds that it may take
) -> Data:
    """Until every Deployment and DaemonSet has all its pods; says every ten seconds what is missing and why."""
    reached = client.of(context.cluster)
    if context.dry:
        return {"rows": [report.as_dict(finding) for finding in workload.late(reached, objects)]}
    return {"msg": workload.wait(reached, objects, timeout, context.say)}


def gpus(
    context: Context,
    image: str,  # the device plugin's image
    runtime_class: str,  # the RuntimeClass of pods with a GPU
    wait_seconds: float | None = None,  # seconds to wait until every node offers its GPU, or fail
) -> Data:
    """Who offers the nodes' GPUs; `objects` has the device plugin where nobody does. Reads only."""
    cluster = context.cluster
    reached = client.of(cluster)
    until = time.monotonic() + (wait_seconds or 0)
    while True:
        found = reached.gpu_facts()
        missing = judged_gpus.missing(cluster, found) if wait_seconds is not None else []
        if not missing or time.monotonic() > until:
            break
        time.sleep(2)
    rows = judged_gpus.judge(cluster, found, runtime_class) + missing
    judged = ansible.verdict(rows, judged_gpus.who_offers(found))
    objects = gpu.device_plugin(cluster, image, runtime_class) if judged_gpus.needed(cluster, found) else []
    return {**judged, "kubeconfig": client.kubeconfig(cluster), "objects": objects}


def multus_objects(
    context: Context,
    image: str,  # Multus' image
    cni_bin: str,  # folder of CNI's programs
    cni_conf: str,  # folder of CNI's configuration
) -> Data:
    """Multus and the pods' networks; `kubeconfig` says where to apply them."""
    cluster = context.cluster
    return {
        "kubeconfig": client.kubeconfig(cluster),
        "namespace": cluster.namespace,
        "objects": multus.multus(image, cni_bin, cni_conf),
        "attachments": manifests.fabric_objects(cluster),
        "rails": len(cluster.fabric.rails),
    }


def multus_absent(
    context: Context,
    waited_for: str,  # Multus' image that did not come up
    seconds: int,  # how long that was waited for
    why: str,  # what the wait itself said
) -> Data:
    """What keeps Multus from running. Reads only."""
    cluster = context.cluster
    waiting = client.Client(client.of(cluster).core, multus.NAMESPACE).waiting(multus.SELECTOR)
    return ansible.verdict(judged_networks.absent(cluster, waiting, waited_for, seconds, why), "")


def networks(context: Context) -> Data:
    """The pods' networks, judged. Reads only."""
    cluster = context.cluster
    planned = judged_networks.planned(cluster)
    rows = judged_networks.judge(cluster, planned, client.of(cluster).networks())
    return ansible.verdict(rows, f"{len(planned)} networks are as planned")


def page(context: Context, image: str) -> Data:
    """The page's objects and where to apply them; `wanted` says whether this site has one. The image has Python."""
    cluster, told = context.cluster, context.vars
    where = {"kubeconfig": client.kubeconfig(cluster), "namespace": cluster.namespace}
    if all(told.get(name) is None for name in ("serve", "client_keys")):  # docs/watch.md
        return {**where, "wanted": False, "objects": []}
    given = {name: ansible.plain(told[name]) for name in ("serve", "profile") if told.get(name) is not None}
    known = facts.planned({**ansible.inventory(told), **given}).facts()
    api = client.of(cluster).api_addresses()
    return {**where, "wanted": True, "objects": page_objects.page(image, cluster.namespace, known, api)}


def metrics(
    context: Context,
    enabled: bool,  # without it everything of ours is to go
    prometheus: Literal["auto", "install", "none"],  # who shall scrape
    exporter_image: str,  # the node-exporter's image
    prometheus_image: str,  # Prometheus' image, where ours is installed
    keep_gb: int,  # how much history ours keeps
) -> Data:
    """Which Prometheus and exporters there are: `objects` has what is to be applied, `gone` what goes afterwards."""
    cluster = context.cluster
    reached = client.of(cluster)
    objects: list[Data] = []
    told = "no metrics, as was asked"
    if enabled:
        found = site_metrics.look(reached.core, cluster.namespace)
        objects, told = site_metrics.plan(cluster, found, prometheus, (exporter_image, prometheus_image), keep_gb)
    gone = site_metrics.gone(Taker.of(reached), objects)
    return {"kubeconfig": client.kubeconfig(cluster), "objects": objects, "gone": gone, "msg": told}


def forget_metrics(context: Context, gone: Sequence[Data]) -> Data:
    """Delete objects of an earlier choice."""
    site_metrics.forget(Taker.of(client.of(context.cluster), dry=context.dry), list(gone))
    return {"changed": True, "drift": site_metrics.drift(list(gone))}
