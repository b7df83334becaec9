"""The labels by which objects of ours are found again; `render` writes them, whoever looks at a site reads them."""

from __future__ import annotations

PART_OF = {"app.kubernetes.io/part-of": "sparkloom"}
ENGINES = {"app.kubernetes.io/component": "engine", **PART_OF}
ROUTER = {"app.kubernetes.io/name": "router", **PART_OF}
HOSTS = {"app.kubernetes.io/name": "sparkloom-hosts"}  # the node-exporters
PROFILE = "sparkloom/profile"  # the group's
RANK = "sparkloom/rank"
NETWORKS = "k8s.v1.cni.cncf.io/networks"  # the annotation by which a pod asks Multus for its rails
HOSTNAME = "kubernetes.io/hostname"  # of a node
CONFIG_HASH = "sparkloom/config-hash"
STOPS = "stopped"  # a ConfigMap: by a group's label, who wants no pod of it, and since when
STOPPED = "sparkloom/stopped"  # an annotation that said so of a StatefulSet until November 2026
# A Lease says who works on a site, in a namespace that no operation makes or takes away.
LEASES, MARK, RUNS = "default", "sparkloom/", "runs"
ONLY_KEY, ONLY_SERVED = "engine-own-key", "served"  # a Secret and a ConfigMap, as a site with one profile has them


def lease(site: str) -> str:
    """The name of that Lease."""
    return f"sparkloom-{site}"
