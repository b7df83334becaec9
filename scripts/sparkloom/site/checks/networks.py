"""Are the rails' network attachments in the cluster, and do they say what the plan says?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import attachments, multus

AGAIN = "playbooks/network.yml makes it so"


def planned(cluster: Cluster) -> dict[str, str]:
    """Every rail and function in use, by name: the configuration that CNI gets."""
    return {item["metadata"]["name"]: item["spec"]["config"] for item in attachments.definitions(cluster)}


def judge(cluster: Cluster, names: Iterable[str], there: Mapping[str, str]) -> list[Finding]:
    """The attachments of these names; `there` is name -> configuration as the cluster has it."""
    wanted = planned(cluster)
    differences = (_difference(name, wanted.get(name), there.get(name)) for name in sorted(names))
    return [Finding(cluster.name, "networks", *difference, AGAIN) for difference in differences if difference]


def _difference(name: str, wanted: str | None, there: str | None) -> tuple[str, str] | None:
    """What was found and what was expected."""
    if there is None:
        return f"no attachment {name}", name
    try:
        config: Any = json.loads(there)
    except ValueError as error:
        return f"{name}: no JSON ({error})", "CNI's configuration"
    if wanted is not None and config != json.loads(wanted):
        return f"{name}: {json.dumps(config)}", wanted
    return None


def absent(cluster: Cluster, waiting: Mapping[str, str], image: str, seconds: int, why: str) -> list[Finding]:
    """Multus did not come up in time: what each of its pods waits for."""
    logs = f"kubectl -n {multus.NAMESPACE} logs -l app.kubernetes.io/name={multus.NAME}"
    change = f"multus_image in group_vars/all/versions.yml when it cannot be pulled; else {logs}"
    expected = f"{image} on every node within {seconds} s (multus_wait_seconds)"
    reasons = [(cluster.called.get(node, node or cluster.name), text) for node, text in waiting.items()]
    return [Finding(node, "Multus", text, expected, change) for node, text in reasons or [(cluster.name, why)]]
