"""The few things asked of a cluster: pods of a group, the end of a log, a connection to a port."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sparkloom.errors import InputError


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster through one kubeconfig, one namespace of it."""

    core: Any
    namespace: str

    @classmethod
    def of(cls, kubeconfig: str, namespace: str) -> Cluster:
        from kubernetes import client, config

        if not Path(kubeconfig).is_file():
            raise InputError.single(
                kubeconfig,
                "no such kubeconfig; cluster.kubernetes.kubeconfig in cluster.yml names it",
                rule="missing-file",
            )
        try:
            return cls(client.CoreV1Api(config.new_client_from_config(kubeconfig)), namespace)
        except config.ConfigException as error:
            raise InputError.single(kubeconfig, f"not a kubeconfig: {error}", rule="kubeconfig") from None

    def pods(self, labels: dict[str, str]) -> list[Any]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        found = self.core.list_namespaced_pod(self.namespace, label_selector=selector)
        return sorted(found.items, key=lambda pod: str(pod.metadata.name))

    def refusals(self, seconds: float) -> list[str]:
        """Why controllers could not make pods during the last seconds, latest last."""
        found = self.core.list_namespaced_event(self.namespace, field_selector="reason=FailedCreate")
        since = datetime.now(UTC) - timedelta(seconds=seconds)
        seen = [(event.last_timestamp or event.event_time, str(event.message)) for event in found.items]
        return [message for at, message in sorted(seen, key=lambda entry: str(entry[0])) if at and at >= since]

    def facts(self, runtime_class: str) -> dict[str, Any]:
        """What a served profile needs of the cluster, as plain data."""
        known = runtime_class in self._runtime_classes()
        return {"nodes": self._nodes(), "runtime_class": known, "attachments": self.networks()}

    def networks(self) -> dict[str, str]:
        """The network attachments of the namespace: name -> CNI's configuration."""
        from kubernetes import client

        attachments = client.CustomObjectsApi(self.core.api_client).list_namespaced_custom_object
        group = ("k8s.cni.cncf.io", "v1", self.namespace, "network-attachment-definitions")
        try:
            items = attachments(*group)["items"]
        except client.ApiException as error:
            if error.status != 404:  # 404: the kind itself is unknown, Multus was never installed
                raise
            return {}
        return {item["metadata"]["name"]: str(item.get("spec", {}).get("config", "")) for item in items}

    def gpu_facts(self) -> dict[str, Any]:
        """Which nodes offer GPUs, and which DaemonSets look like the device plugin that does."""
        from kubernetes import client

        sets = client.AppsV1Api(self.core.api_client).list_daemon_set_for_all_namespaces().items
        plugins = [
            {"namespace": item.metadata.namespace, "name": item.metadata.name, "image": container.image}
            for item in sets
            for container in item.spec.template.spec.containers
            if "nvidia" in container.image and "device-plugin" in container.image
        ]
        return {"nodes": self._nodes(), "runtime_classes": self._runtime_classes(), "plugins": plugins}

    def _nodes(self) -> dict[str, dict[str, Any]]:
        return {
            node.metadata.labels.get("kubernetes.io/hostname", node.metadata.name): {
                "ready": any(c.type == "Ready" and c.status == "True" for c in node.status.conditions),
                "gpus": int(node.status.allocatable.get("nvidia.com/gpu", 0)),
                "cordoned": bool(node.spec.unschedulable),
            }
            for node in self.core.list_node().items
        }

    def _runtime_classes(self) -> list[str]:
        from kubernetes import client

        return sorted(item.metadata.name for item in client.NodeV1Api(self.core.api_client).list_runtime_class().items)

    def waiting(self, labels: dict[str, str]) -> dict[str, str]:
        """What containers of these pods wait for, by node; those that run are left out."""
        found: dict[str, str] = {}
        for pod in self.pods(labels):
            for state in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
                reason = state.state.waiting
                if reason and reason.reason != "PodInitializing":
                    found[str(pod.spec.node_name)] = f"{reason.reason}: {reason.message or 'no more is known'}"
        return found

    def tail(self, pod: str, lines: int, *, previous: bool = False) -> list[str]:
        """The last lines of a pod's log; nothing when there is no log yet."""
        from kubernetes.client import ApiException

        try:
            text = self.core.read_namespaced_pod_log(pod, self.namespace, tail_lines=lines, previous=previous)
        except ApiException:
            return []
        return [line for line in str(text).splitlines() if line.strip()]

    def head(self, pod: str, limit: int) -> str:
        """The first bytes of a pod's log: what the engine said while it started."""
        return str(self.core.read_namespaced_pod_log(pod, self.namespace, limit_bytes=limit))

    def connect(self, pod: str, port: int, timeout: float) -> http.client.HTTPConnection:
        """HTTP to a port inside the pod, through the API server: no route, no NetworkPolicy in between."""
        from kubernetes.stream import portforward

        forward = portforward(self.core.connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        connection.sock = forward.socket(port)
        connection.sock.settimeout(timeout)
        return connection
