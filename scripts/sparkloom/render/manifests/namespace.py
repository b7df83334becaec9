"""The namespace: the only place where privileged pods may run.

Privileged even in `device-plugin` mode: the weights and the kernel cache are hostPath volumes, which
both stricter Pod Security levels forbid.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names


def namespace(cluster: Cluster) -> dict[str, Any]:
    level = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": cluster.namespace, "labels": {**names.PART_OF, **level}},
    }
