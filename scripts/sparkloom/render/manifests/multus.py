"""Multus, the thick plugin: the few objects that bring a second and third interface into a pod.

Built from Multus' documented configuration, with what K3s needs. K3s keeps its CNI programs as links into a
versioned folder beside them, so the parent is mounted, at the path it has on the node (the daemon looks
programs up in its own view and runs them in the node's). Mounts come in from the node and never go back:
with Bidirectional they pile up until no pod starts. 50 MiB, upstream's limit, runs out when a node boots.

The daemon takes its configuration away when it is told to stop (Multus issues 1387, 1468, 1527), and the kubelet then
starts pods with the cluster's network alone: a rank without rails that says Running. A copy under another name stays,
which the runtime takes when the daemon's is gone: pods then wait for the daemon, also after a reboot. The name begins
as Multus' own, so that the daemon does not take it for the cluster's network, and sorts behind it. Until it is whole
its name ends otherwise: after a power cut Multus' file is there, so the copy is made while the daemon looks around, and
one that took the half for the cluster's network wrote an empty file, on which the node never got a network again.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from sparkloom.render import template
from sparkloom.render.manifests import names

NAMESPACE, NAME = "kube-system", "multus"
SELECTOR = {"app.kubernetes.io/name": NAME}
LABELS = {**SELECTOR, "app.kubernetes.io/component": "network", **names.PART_OF}
CONF_IN_POD = "/host/etc/cni/net.d"
KEPT = "00-multus.kept.conf"
KEEP = (
    f"cd {CONF_IN_POD} && until [ -s 00-multus.conf ]; do sleep 0.2; done && "
    f"cp 00-multus.conf {KEPT}.new && mv {KEPT}.new {KEPT}"
)


def multus(image: str, cni_bin: str, cni_conf: str) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `cni_bin` and `cni_conf` are the node's folders."""
    objects = template.objects(
        "manifests/multus",
        image=image,
        cni_bin=cni_bin,
        cni_conf=cni_conf,
        programs=str(PurePosixPath(cni_bin).parent),
        conf_in_pod=CONF_IN_POD,
        keep=KEEP,
        namespace=NAMESPACE,
        labels=LABELS,
        selector=SELECTOR,
    )
    *_, config, daemon = objects
    daemon["spec"]["template"]["metadata"]["annotations"] = names.read_at_start(config["data"]["daemon-config.json"])
    return objects
