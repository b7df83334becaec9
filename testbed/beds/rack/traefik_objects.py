"""Traefik in the cluster as K3s has it: namespace, names, labels, ports and entry points of its chart.

K3s' load balancer listens on every node's ports 80 and 443 and writes the nodes' addresses into the Service. Here one
node does: a port of the pod itself, and the address written by us.
"""

from __future__ import annotations

from typing import Any

from testbed.base import names
from testbed.make.traefik import IMAGE

SPACE, NAME = "kube-system", "traefik"
SELECTOR = {"app.kubernetes.io/name": "traefik", "app.kubernetes.io/instance": "traefik-kube-system"}
NODE = names.NODES["spark1"]
ENTRIES = {"web": (8000, 80), "websecure": (8443, 443)}
ARGS = (
    "--entryPoints.metrics.address=:9100/tcp",
    "--entryPoints.traefik.address=:8080/tcp",
    "--entryPoints.web.address=:8000/tcp",
    "--entryPoints.websecure.address=:8443/tcp",
    "--entryPoints.websecure.http.tls=true",
    "--ping=true",
    "--metrics.prometheus=true",
    "--metrics.prometheus.entrypoint=metrics",
    "--providers.kubernetescrd",
    "--providers.kubernetescrd.allowEmptyServices=true",
    "--providers.kubernetesingress",
    "--providers.kubernetesingress.allowEmptyServices=true",
    "--providers.kubernetesingress.ingressendpoint.publishedservice=kube-system/traefik",
    "--log.level=INFO",
    "--global.checknewversion=false",
    "--global.sendanonymoususage=false",
)
READ = ["get", "list", "watch"]
RULES = [
    {"apiGroups": [""], "resources": ["services", "secrets", "nodes", "configmaps", "pods"], "verbs": READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": READ},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], "verbs": READ},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses/status"], "verbs": ["update"]},
    {"apiGroups": ["traefik.io"], "resources": ["*"], "verbs": READ},
]


def objects() -> list[dict[str, Any]]:
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": SPACE}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": NAME}
    return [
        _object("v1", "ServiceAccount"),
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": RULES},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": reference,
            "subjects": [subject],
        },
        _object("apps/v1", "Deployment", spec=_deployment()),
        _object("v1", "Service", spec=_service()),
    ]


def _object(version: str, kind: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": SPACE, "labels": dict(SELECTOR)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _service() -> dict[str, Any]:
    ports = [{"name": name, "port": outside, "targetPort": name} for name, (_, outside) in ENTRIES.items()]
    return {"type": "LoadBalancer", "selector": dict(SELECTOR), "ports": ports}


def _deployment() -> dict[str, Any]:
    ports = [{"name": n, "containerPort": inside, "hostPort": outside} for n, (inside, outside) in ENTRIES.items()]
    probe = {"httpGet": {"path": "/ping", "port": 8080}, "periodSeconds": 2, "failureThreshold": 3}
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": list(ARGS),
        "ports": ports,
        "readinessProbe": probe,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": NAME,
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": SELECTOR},
        "template": {"metadata": {"labels": dict(SELECTOR)}, "spec": pod},
    }
