"""Are the rails' network attachments in the cluster, and do they say what the plan says?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import attachments, multus
from sparkloom.site.checks import Row

AGAIN = "playbooks/network.yml makes it so"


def planned(cluster: Cluster) -> dict[str, str]:
    """Every rail and function in use, by name: the configuration that CNI gets."""
    return {item["metadata"]["name"]: item["spec"]["config"] for item in attachments.definitions(cluster)}


def judge(cluster: Cluster, names: Iterable[str], found: Mapping[str, str]) -> list[Row]:
    """Rows for the attachments of these names; `found` is name -> configuration as the cluster has it."""
    wanted = planned(cluster)
    return [row for name in sorted(names) for row in _one(cluster, name, wanted.get(name), found.get(name))]


def _one(cluster: Cluster, name: str, wanted: str | None, found: str | None) -> Iterator[Row]:
    def row(what: str, expected: str) -> Row:
        return Row(cluster.name, "networks", what, expected, AGAIN)

    if found is None:
        yield row(f"no attachment {name}", name)
        return
    try:
        config: Any = json.loads(found)
    except ValueError as error:
        yield row(f"{name}: no JSON ({error})", "CNI's configuration")
        return
    if wanted is not None and config != json.loads(wanted):
        yield row(f"{name}: {json.dumps(config)}", wanted)


def absent(cluster: Cluster, waiting: Mapping[str, str], image: str, seconds: int, why: str) -> list[Row]:
    """Multus did not come up in time: what each of its pods waits for."""
    logs = f"kubectl -n {multus.NAMESPACE} logs -l app.kubernetes.io/name={multus.NAME}"
    change = f"multus_image in group_vars/all/versions.yml when it cannot be pulled; else {logs}"
    expected = f"{image} on every node within {seconds} s (multus_wait_seconds)"
    names = {node.kubernetes_node: node.name for node in cluster.nodes}
    found = [(names.get(node, node or cluster.name), text) for node, text in waiting.items()]
    return [Row(node, "Multus", text, expected, change) for node, text in found or [(cluster.name, why)]]
