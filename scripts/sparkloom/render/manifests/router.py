"""The router of several models in the cluster: one pod of Envoy, what it may reach, and who may reach it.

One replica, and a new one before the old one goes (maxSurge): a second one grants each person his whole limit again,
but only until new connections are led to the new one, about a second, and to those that keep one to the old one; a
Recreate would leave nobody to ask for as long as the last stream takes. No PodDisruptionBudget: of one pod it would
either forbid every drain of its Spark or say nothing.

All its files are one Secret, mounted as one folder, so a group or a key more restarts nothing: the kubelet swaps the
folder and Envoy reads it. What only a start reads (bootstrap, script, words) is in the pod's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.render.manifests import access, names, pod_defaults
from sparkloom.render.router import Terms, envoy

NAME = "router"
CERTIFICATE = "gateway-tls"  # the Secret of the endpoint's certificate
CERTIFICATES = "/etc/sparkloom-tls"  # where it is mounted
PAGE, PAGE_PORT = "page", 8090  # what people look at, where it is there
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": NAME, **names.PART_OF}
SELECTOR = {"app.kubernetes.io/name": NAME, **names.PART_OF}
METRICS = {"app.kubernetes.io/name": "prometheus"}  # as its charts label it, in whatever namespace
USER = 65532
GRACE = 600  # seconds that streams have when another pod takes over
PROGRAM = "/usr/local/bin/envoy"
# Its Service names it no more when this begins. What is on its way goes on; the connections that idle are closed.
DRAIN = """\
ask() {
  exec 3<>/dev/tcp/127.0.0.1/%(admin)d || return 1
  printf '%%s %%s HTTP/1.1\\r\\nHost: router\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' "$1" "$2" >&3
  while IFS= read -r line <&3 || [ -n "$line" ]; do echo "$line"; done
  exec 3>&-
}
sleep 3
ask POST /healthcheck/fail >/dev/null
while [ $SECONDS -lt %(longest)d ]; do
  case "$(ask GET '/stats?filter=^http.%(statistics)s.downstream_rq_active$')" in
    *'rq_active: 0'*) exit 0 ;;
  esac
  sleep 1
done
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """`engines`: the ports at which engines answer."""

    image: str
    terms: Terms
    engines: tuple[int, ...]


def router(wanted: Wanted, cluster: Cluster, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Objects in the order to apply them, for the Secret with these files, which is made elsewhere."""
    space = cluster.namespace
    return [
        access.priority_class(),
        _object("v1", "ServiceAccount", space, automountServiceAccountToken=False),
        *_policies(wanted, space),
        names.service(_metadata(space), SELECTOR, {"http": wanted.terms.port, "metrics": wanted.terms.metrics_port}),
        _deployment(wanted, cluster, files),
    ]


def _metadata(space: str, name: str = NAME) -> dict[str, Any]:
    return {"name": name, "namespace": space, "labels": dict(LABELS)}


def _object(api: str, kind: str, space: str, **content: Any) -> dict[str, Any]:
    return names.manifest(api, kind, _metadata(space), **content)


def started_by(wanted: Wanted, files: Mapping[str, str]) -> str:
    """What makes another pod: the files that are read once, in their own words and in those of the command."""
    once = "\n".join((files["envoy.yaml"], *(files[name] for name in envoy.SCRIPTS), *_words(wanted.terms)))
    return hashlib.sha256(once.encode()).hexdigest()[:16]


def _words(terms: Terms) -> list[str]:
    return [PROGRAM, *envoy.argv(terms)[1:]]


def _deployment(wanted: Wanted, cluster: Cluster, files: Mapping[str, str]) -> dict[str, Any]:
    inner = {"labels": dict(LABELS), "annotations": {names.CONFIG_HASH: started_by(wanted, files)}}
    spec = pod_defaults.surging(SELECTOR, {"metadata": inner, "spec": _pod(wanted, cluster)}, kept=3)
    return _object("apps/v1", "Deployment", cluster.namespace, spec=spec)


def _pod(wanted: Wanted, cluster: Cluster) -> dict[str, Any]:
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **pod_defaults.any_spark(cluster),
        "terminationGracePeriodSeconds": GRACE,
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},  # names here are whole ones
        "securityContext": pod_defaults.unprivileged(USER, fsGroup=USER),
        "containers": [_container(wanted)],
        "volumes": [_secret("files", NAME), *([_secret("certificate", CERTIFICATE)] if wanted.terms.tls else [])],
    }


def _secret(volume: str, name: str) -> dict[str, Any]:
    return {"name": volume, "secret": {"secretName": name, "defaultMode": 0o440}}


def _container(wanted: Wanted) -> dict[str, Any]:
    terms = wanted.terms
    folders = {"files": terms.folder, **({"certificate": terms.tls} if terms.tls else {})}
    listening = {"http": terms.port, "metrics": terms.metrics_port, "probes": terms.probe_port}
    if terms.tls:
        listening["https"] = terms.tls_port
    drain = DRAIN % {"admin": terms.admin_port, "longest": GRACE - 20, "statistics": envoy.STATISTICS}
    ready = {"httpGet": {"path": "/ready", "port": "probes"}}
    return {
        "name": "envoy",
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": _words(terms),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in listening.items()],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": f"{terms.memory}Mi"},
        },
        "securityContext": {"privileged": False, **pod_defaults.locked()},
        "startupProbe": {**ready, "periodSeconds": 1, "failureThreshold": 60, "timeoutSeconds": 2},
        "readinessProbe": {**ready, "periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 3},
        # its one worker answers this too: who is stuck for two minutes comes back by nothing else
        "livenessProbe": {**ready, "periodSeconds": 15, "failureThreshold": 8, "timeoutSeconds": 5},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/bash", "-c", drain]}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in folders.items()],
    }


def _policies(wanted: Wanted, space: str) -> Iterable[dict[str, Any]]:
    """Whom the router hears, whom it reaches, and that each rank 0 tells it whether it is ready.

    The last one stands beside the ranks' own policies, which add up.
    """
    mine = {"podSelector": {"matchLabels": dict(SELECTOR)}}
    engines = dict(names.ENGINES)
    clients = (wanted.terms.port, *([wanted.terms.tls_port] if wanted.terms.tls else []))
    heard = [
        {"ports": pod_defaults.tcp(*clients)},
        {"from": _watchers(), "ports": pod_defaults.tcp(wanted.terms.metrics_port)},
    ]
    asked = pod_defaults.tcp(*sorted({*wanted.engines, ports.PROBES}))
    reached = [{"to": [{"podSelector": {"matchLabels": engines}}], "ports": asked}, access.name_service()]
    if wanted.terms.page:
        page = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": PAGE, **names.PART_OF}}}
        reached.append({"to": [page], "ports": pod_defaults.tcp(PAGE_PORT)})
    asks = [{"from": [mine], "ports": pod_defaults.tcp(ports.PROBES)}]
    yield names.network_policy(_metadata(space), SELECTOR, ingress=heard)
    yield names.network_policy(_metadata(space, f"{NAME}-out"), SELECTOR, egress=reached)
    yield names.network_policy(_metadata(space, f"{NAME}-asks"), engines, ingress=asks)


def _watchers() -> list[dict[str, Any]]:
    """A Prometheus wherever it is, the page of this namespace, and namespaces that may reach engines too."""
    return [
        {"namespaceSelector": {}, "podSelector": {"matchLabels": dict(METRICS)}},
        {"podSelector": {"matchLabels": {"app.kubernetes.io/name": PAGE, **names.PART_OF}}},
        {"namespaceSelector": {"matchLabels": {access.ACCESS: "true"}}},
    ]
