"""The client of a site's cluster: its pods, their logs, a connection to a port, what is kept there."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import require_own
from sparkloom.onnode.host_metrics import certificates
from sparkloom.onnode.kube import JSON
from sparkloom.onnode.now import seen
from sparkloom.onnode.now.pods import ready as is_ready
from sparkloom.render.manifests.names import ENGINES, PART_OF
from sparkloom.site import patience

SUPERVISOR = ["python3", "/sparkloom/rank", "status"]


def selector(labels: Mapping[str, str]) -> str:
    """Labels as Kubernetes' lists are asked for them."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def kubeconfig(cluster: Cluster) -> str:
    """The file with the administrator's access to the cluster."""
    usual = "~/.kube/config" if cluster.kubernetes.provider == "existing" else f"~/.kube/sparkloom-{cluster.name}"
    return str(place(cluster.kubernetes.kubeconfig or usual))


def asked(question: Callable[[], Any], cluster: Cluster) -> Any:
    """What the cluster answers; one that does not is said by the file that names it."""
    try:
        return question()
    except Exception as error:
        if not (said := patience.trouble(error)):
            raise
        message = f"{said}; cluster.kubernetes.kubeconfig names it"
        raise InputError.single(kubeconfig(cluster), message, rule="no-cluster") from None


def of(cluster: Cluster, **patient: Any) -> Client:
    require_own(cluster.example)
    return Client.at(kubeconfig(cluster), cluster.namespace, **patient)


@dataclass(frozen=True, slots=True)
class Client:
    """One cluster through one kubeconfig, one namespace of it."""

    core: Any
    namespace: str

    @classmethod
    def at(cls, kubeconfig: str, namespace: str, **patient: Any) -> Client:
        """`patient`: as patience.api_client takes it."""
        from kubernetes import client

        if not Path(kubeconfig).is_file():
            told = "no such kubeconfig; `sparkloom up` writes it; cluster.kubernetes.kubeconfig in cluster.yml names it"
            raise InputError.single(kubeconfig, told, rule="missing-file")
        try:
            made = cls(client.CoreV1Api(patience.api_client(kubeconfig, **patient)), namespace)
            own = made.core.api_client.configuration.cert_file
            ended = certificates.ended(Path(own).read_text()) if own else ""
        except Exception as error:  # the library's reader trips over what is no kubeconfig in a dozen ways
            told = f"not a kubeconfig: {error or type(error).__name__}"
            raise InputError.single(kubeconfig, " ".join(told.split()), rule="kubeconfig") from None
        if ended:
            told = f"its certificate ended on {ended}, and {patience.here()}; {patience.COPY}"
            raise InputError.single(kubeconfig, told, rule="kubeconfig")
        return made

    def pods(self, labels: dict[str, str]) -> list[Any]:
        return seen.pods(self, self.namespace, labels)

    def api(self, path: str, query: Mapping[str, str], accept: str, seconds: float | None = None) -> Any:
        """What the cluster's API says at a path."""
        return self._answered("GET", path, {"Accept": accept}, query, _request_timeout=seconds)

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any:
        """The object as it is then."""
        return self._answered(method, path, {"Accept": JSON, "Content-Type": kind}, {}, body=content)

    def _answered(self, method: str, path: str, headers: dict[str, str], query: Mapping[str, str], **asked: Any) -> Any:
        """As the API's own JSON has it."""
        answer = self.core.api_client.call_api(
            path,
            method,
            query_params=list(query.items()),
            header_params=headers,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _return_http_data_only=True,
            **asked,
        )
        return json.loads(answer.data)

    def answers(self) -> None:
        """Raises what keeps the cluster from that."""
        self.api("/api/v1/namespaces/default", {}, JSON)

    def engine_sets(self) -> list[Any]:
        """The StatefulSets of all ranks, whether they have their pods or not."""
        return seen.sets(self, self.namespace, ENGINES)

    def stops(self) -> dict[str, str]:
        return seen.stops(self, self.namespace)

    def workload(self, kind: str, name: str) -> Any:
        """A Deployment or a DaemonSet; None where there is none of that name."""
        from kubernetes import client

        apps = client.AppsV1Api(self.core.api_client)
        read = apps.read_namespaced_deployment if kind == "Deployment" else apps.read_namespaced_daemon_set
        return or_none(lambda: read(name, self.namespace))

    def refusals(self, seconds: float) -> list[str]:
        """Why controllers could not make pods during the last seconds, latest last."""
        events = self.core.list_namespaced_event(self.namespace, field_selector="reason=FailedCreate").items
        since = datetime.now(UTC) - timedelta(seconds=seconds)
        seen = [(event.last_timestamp or event.event_time, str(event.message)) for event in events]
        return [message for at, message in sorted(seen, key=lambda entry: str(entry[0])) if at and at >= since]

    def warnings(self) -> dict[str, str]:
        return seen.warnings(self, self.namespace)

    def records(self) -> list[dict[str, Any]]:
        """What was applied, as each profile's own record in the cluster tells it."""
        return [json.loads(data["record.json"]) for data in self.config_maps(ENGINES) if "record.json" in data]

    def dns(self) -> tuple[int, int] | None:
        """Pods behind the cluster's name service, ready and all; None where it has none of the usual name."""
        if or_none(lambda: self.core.read_namespaced_service("kube-dns", "kube-system")) is None:
            return None
        pods = seen.pods(self, "kube-system", {"k8s-app": "kube-dns"})
        return sum(map(is_ready, pods)), len(pods)

    def report(self, pod: str) -> dict[str, Any] | None:
        """What the supervisor in a running pod says of itself; None when it does not answer."""
        return json_text.mapping(self.ask(pod, SUPERVISOR)) or None

    def nudge(self, pod: str, annotation: str) -> None:
        """Another annotation makes the kubelet look at a pod now and renew its Secrets' files; nothing restarts."""
        body = {"metadata": {"annotations": {annotation: f"{time.time():.3f}"}}}
        self.core.patch_namespaced_pod(pod, self.namespace, body)

    def has_service(self, name: str) -> bool:
        return or_none(lambda: self.core.read_namespaced_service(name, self.namespace)) is not None

    def delete_pod(self, name: str) -> None:
        """As `kubectl delete pod`: it may end in its own time, and its set makes another."""
        or_none(lambda: self.core.delete_namespaced_pod(name, self.namespace))

    def facts(self) -> dict[str, Any]:
        """What a served profile needs of the cluster, as plain data."""
        return {"nodes": self.nodes(), "runtime_classes": self._runtime_classes(), "attachments": self.networks()}

    def networks(self) -> dict[str, str]:
        """The network attachments of the namespace: name -> CNI's configuration."""
        from kubernetes import client

        attachments = client.CustomObjectsApi(self.core.api_client).list_namespaced_custom_object
        kind = ("k8s.cni.cncf.io", "v1", self.namespace, "network-attachment-definitions")
        answer = or_none(lambda: attachments(*kind)) or {"items": []}  # None: Multus was never installed
        return {item["metadata"]["name"]: str(item.get("spec", {}).get("config", "")) for item in answer["items"]}

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
        return {"nodes": self.nodes(), "runtime_classes": self._runtime_classes(), "plugins": plugins}

    def nodes(self) -> dict[str, dict[str, Any]]:
        return {
            node.metadata.labels.get("kubernetes.io/hostname", node.metadata.name): {
                "ready": is_ready(node),
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
        reasons: dict[str, str] = {}
        for pod in self.pods(labels):
            for state in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
                reason = state.state.waiting
                if reason and reason.reason != "PodInitializing":
                    reasons[str(pod.spec.node_name)] = f"{reason.reason}: {reason.message or 'no more is known'}"
        return reasons

    def tail(self, pod: str, lines: int, *, previous: bool = False) -> list[str]:
        """The last lines of a pod's log; nothing when there is no log yet."""
        text = self.whole(pod, previous=previous, tail_lines=lines)
        return [line for line in text.splitlines() if line.strip()]

    def head(self, pod: str, limit: int) -> str:
        """The first bytes of a pod's log: what the engine said while it started."""
        return str(self.core.read_namespaced_pod_log(pod, self.namespace, limit_bytes=limit))

    def connect(self, pod: str, port: int, timeout: float) -> http.client.HTTPConnection:
        """HTTP to a port inside the pod, through the API server: no route, no NetworkPolicy in between."""
        from kubernetes.stream import portforward

        get = self._apart().connect_get_namespaced_pod_portforward
        forward = portforward(get, pod, self.namespace, ports=str(port))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        connection.sock = forward.socket(port)
        connection.sock.settimeout(timeout)
        return connection

    def secret(self, name: str) -> dict[str, str] | None:
        """A Secret's texts, or None."""
        kept = or_none(lambda: self.core.read_namespaced_secret(name, self.namespace))
        return kept and {key: base64.b64decode(value).decode() for key, value in (kept.data or {}).items()}

    def put_secret(
        self,
        name: str,
        data: dict[str, str],
        *,
        kind: str = "Opaque",
        dry: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> bool:
        """Make or replace a Secret of ours; tells whether it differed. Its content is shown nowhere."""
        content = {"type": kind, "stringData": data}
        return self._put("secret", name, self.secret(name), data, content, dry, labels)

    def config_map(self, name: str) -> dict[str, str] | None:
        kept = or_none(lambda: self.core.read_namespaced_config_map(name, self.namespace))
        return kept and dict(kept.data or {})

    def config_maps(self, labels: Mapping[str, str] = PART_OF) -> list[dict[str, str]]:
        """All of ours."""
        listed = self.core.list_namespaced_config_map(self.namespace, label_selector=selector(labels)).items
        return [dict(item.data or {}) for item in listed]

    def put_config_map(
        self,
        name: str,
        data: dict[str, str],
        *,
        binary: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> bool:
        """Make or replace a ConfigMap of ours; tells whether it differed, which one with bytes in it always does."""
        wanted, content = {**data, **(binary or {})}, {"data": data, **({"binaryData": dict(binary)} if binary else {})}
        return self._put("config_map", name, self.config_map(name), wanted, content, False, labels)

    def remove_config_map(self, name: str) -> None:
        or_none(lambda: self.core.delete_namespaced_config_map(name, self.namespace))

    def _put(
        self,
        kind: str,
        name: str,
        known: dict[str, str] | None,
        data: dict[str, str],
        content: dict[str, Any],
        dry: bool,
        more: Mapping[str, str] | None = None,
    ) -> bool:
        if known == data:
            return False
        if not dry:
            labels = {**PART_OF, **(more or {})}
            body = {"metadata": {"name": name, "namespace": self.namespace, "labels": labels}, **content}
            if known is None:
                getattr(self.core, f"create_namespaced_{kind}")(self.namespace, body)
            else:
                getattr(self.core, f"replace_namespaced_{kind}")(name, self.namespace, body)
        return True

    def api_addresses(self) -> list[tuple[str, int]]:
        """Where pods reach the cluster's API: its servers, and the Service in front of them."""
        from kubernetes import client

        service = self.core.read_namespaced_service("kubernetes", "default")
        mine = {(str(service.spec.cluster_ip), int(port.port)) for port in service.spec.ports}
        slices = client.DiscoveryV1Api(self.core.api_client).list_namespaced_endpoint_slice(
            "default", label_selector="kubernetes.io/service-name=kubernetes"
        )
        servers = {
            (str(address), int(port.port))
            for one in slices.items
            for end in one.endpoints or []
            for address in end.addresses
            for port in one.ports or []
        }
        return sorted(mine | servers)

    def led_in(self, name: str) -> list[str]:
        """Addresses at which the Service or the Ingress of that name is reached, as its load balancer tells."""
        from kubernetes import client

        ingress = client.NetworkingV1Api(self.core.api_client).read_namespaced_ingress
        found = or_none(lambda: ingress(name, self.namespace)) or or_none(
            lambda: self.core.read_namespaced_service(name, self.namespace)
        )
        listed = found.status.load_balancer.ingress if found else None
        return [str(entry.ip or entry.hostname) for entry in listed or []]

    def node_addresses(self) -> list[str]:
        """Where K3s' load balancer makes a Service reached: every node's own address."""
        listed = (entry for node in self.core.list_node().items for entry in node.status.addresses)
        return sorted({str(entry.address) for entry in listed if entry.type in ("InternalIP", "ExternalIP")})

    def whole(self, pod: str, *, previous: bool = False, **limit: int) -> str:
        """All of a pod's log that the node still has; empty where there is none."""
        from kubernetes.client import ApiException

        try:
            return str(self.core.read_namespaced_pod_log(pod, self.namespace, previous=previous, **limit))
        except ApiException:
            return ""

    def stream(self, pod: str, *, previous: bool = False, follow: bool = False) -> Iterator[str]:
        """A pod's log line by line; with `follow` until the pod ends."""
        response = self.core.read_namespaced_pod_log(
            pod, self.namespace, previous=previous, follow=follow, _preload_content=False
        )
        rest = b""
        for chunk in response.stream():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if rest:
            yield rest.decode(errors="replace")

    def ask(self, pod: str, words: list[str], seconds: float = 10) -> str:
        """What a command in a pod prints; empty when it cannot run there."""
        from kubernetes.client import ApiException
        from kubernetes.stream import stream

        get = self._apart().connect_get_namespaced_pod_exec
        options = {"stderr": False, "stdin": False, "stdout": True, "tty": False, "_request_timeout": seconds}
        try:
            answer = stream(get, pod, self.namespace, command=words, _preload_content=False, **options)
            answer.run_forever(timeout=seconds)
            printed = answer.read_stdout(timeout=1) or ""
            return str(printed) if answer.returncode == 0 else ""
        except (ApiException, OSError):
            return ""

    def _apart(self) -> Any:
        """Another client: a stream and a forwarded port take over everything that theirs sends."""
        from kubernetes import client

        return client.CoreV1Api(client.ApiClient(self.core.api_client.configuration))


def or_none(question: Callable[[], Any]) -> Any:
    """What is there, or None where the cluster knows no such object, or not even its kind."""
    from kubernetes.client import ApiException

    try:
        return question()
    except ApiException as error:
        if error.status != 404:
            raise
        return None
