"""What profiles that serve no more left in the cluster: Services that answer nobody, settings, secrets, policies.

A label tells whose an object is, so nothing is guessed by name. A group whose StatefulSets stand keeps everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sparkloom.render.manifests import names
from sparkloom.site.client import Client, selector

KINDS = {
    "Service": ("CoreV1Api", "service"),
    "ConfigMap": ("CoreV1Api", "config_map"),
    "Secret": ("CoreV1Api", "secret"),
    "NetworkPolicy": ("NetworkingV1Api", "network_policy"),
    "PodDisruptionBudget": ("PolicyV1Api", "pod_disruption_budget"),
}


def take(reached: Client, kept: Collection[str]) -> list[str]:
    """Kind and name of all that is gone; `kept` are the labels of the groups that there are to be."""
    gone = []
    for kind, interface, name in found(reached, kept):
        _delete(interface, KINDS[kind][1], name, reached.namespace)
        gone.append(f"{kind} {name}")
    return gone


def found(reached: Client, kept: Collection[str]) -> Iterator[tuple[str, Any, str]]:
    from kubernetes import client

    others = ",".join(
        [selector(names.ENGINES), names.PROFILE, *(f"{names.PROFILE}!={label}" for label in sorted(kept))]
    )
    sets = client.AppsV1Api(reached.core.api_client).list_namespaced_stateful_set(
        reached.namespace, label_selector=others
    )
    standing = {item.metadata.labels[names.PROFILE] for item in sets.items}
    for kind, (group, plural) in KINDS.items():
        interface = getattr(client, group)(reached.core.api_client)
        listed = getattr(interface, f"list_namespaced_{plural}")(reached.namespace, label_selector=others)
        for item in listed.items:
            if item.metadata.labels[names.PROFILE] not in standing:
                yield kind, interface, str(item.metadata.name)


def _delete(interface: Any, plural: str, name: str, namespace: str) -> None:
    from kubernetes.client import ApiException

    try:
        getattr(interface, f"delete_namespaced_{plural}")(name, namespace)
    except ApiException as error:
        if error.status != 404:  # gone meanwhile
            raise
