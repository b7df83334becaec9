"""Multus, the thick plugin: the few objects that bring a second and third interface into a pod.

Built from Multus' documented configuration, with what K3s needs. K3s keeps its CNI programs as links into a
versioned folder beside them, so the parent is mounted, at the path it has on the node (the daemon looks
programs up in its own view and runs them in the node's). Mounts come in from the node and never go back:
with Bidirectional they pile up until no pod starts. 50 MiB, upstream's limit, runs out when a node boots.

The daemon takes its configuration away when it is told to stop (Multus issues 1387, 1468, 1527), and the kubelet then
starts pods with the cluster's network alone: a rank without rails that says Running. A copy under another name stays,
which the runtime takes when the daemon's is gone: pods then wait for the daemon, also after a reboot. The name begins
as Multus' own, so that the daemon does not take it for the cluster's network, and sorts behind it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Any

from sparkloom.render.manifests import names

NAMESPACE = "kube-system"
NAME = "multus"
PROGRAMS = "/usr/src/multus-cni/bin"  # inside the image
LABELS = {"app.kubernetes.io/name": "multus", "app.kubernetes.io/component": "network", **names.PART_OF}
SELECTOR = {"app.kubernetes.io/name": "multus"}
CONF_IN_POD = "/host/etc/cni/net.d"
KEPT = "00-multus.kept.conf"
KEEP = (
    f"cd {CONF_IN_POD} && until [ -s 00-multus.conf ]; do sleep 0.2; done && "
    f"cp 00-multus.conf .{KEPT} && mv .{KEPT} {KEPT}"
)
MEMORY = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"memory": "512Mi"}}


def multus(image: str, cni_bin: str, cni_conf: str) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `cni_bin` and `cni_conf` are the node's folders."""
    config = _daemon_config(cni_bin)
    return [
        _definition(),
        names.manifest("v1", "ServiceAccount", _meta(NAME, namespace=NAMESPACE)),
        _role(),
        _binding(),
        _config_map(config),
        _daemon(image, cni_bin, cni_conf, config),
    ]


def _meta(name: str, **more: str) -> dict[str, Any]:
    return {"name": name, **more, "labels": dict(LABELS)}


def _definition() -> dict[str, Any]:
    text = {"type": "string"}
    spec = {"type": "object", "properties": {"config": text}}
    properties = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "spec": spec}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    described = {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": {
            "kind": "NetworkAttachmentDefinition",
            "plural": "network-attachment-definitions",
            "singular": "network-attachment-definition",
            "shortNames": ["nad", "net-attach-def"],
        },
        "versions": [version],
    }
    metadata = _meta("network-attachment-definitions.k8s.cni.cncf.io")
    return names.manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", metadata, spec=described)


def _role() -> dict[str, Any]:
    """What the daemon does: watch pods and attachments, write a pod's network status, report events."""
    reads = ["get", "list", "watch"]
    rules = [
        {"apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": reads},
        {"apiGroups": [""], "resources": ["pods"], "verbs": reads},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get", "update", "patch"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
    ]
    return names.manifest("rbac.authorization.k8s.io/v1", "ClusterRole", _meta(NAME), rules=rules)


def _binding() -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]
    api = "rbac.authorization.k8s.io/v1"
    return names.manifest(api, "ClusterRoleBinding", _meta(NAME), roleRef=role, subjects=subjects)


def _daemon_config(cni_bin: str) -> str:
    config = {
        "cniVersion": "0.3.1",
        "chrootDir": "/hostroot",
        "binDir": cni_bin,
        "cniConfigDir": CONF_IN_POD,
        "multusAutoconfigDir": CONF_IN_POD,
        "multusConfigFile": "auto",
        "socketDir": "/host/run/multus/",
        "logLevel": "verbose",
        "logToStderr": True,
    }
    return json.dumps(config, indent=2) + "\n"


def _config_map(config: str) -> dict[str, Any]:
    metadata = _meta("multus-daemon-config", namespace=NAMESPACE)
    return names.manifest("v1", "ConfigMap", metadata, data={"daemon-config.json": config})


def _daemon(image: str, cni_bin: str, cni_conf: str, config: str) -> dict[str, Any]:
    digest = hashlib.sha256(config.encode()).hexdigest()[:16]
    template = {
        "metadata": {"labels": dict(LABELS), "annotations": {names.CONFIG_HASH: digest}},
        "spec": _pod(image, cni_bin, cni_conf),
    }
    return names.daemon_set(_meta("kube-multus-ds", namespace=NAMESPACE), SELECTOR, template)


def _pod(image: str, cni_bin: str, cni_conf: str) -> dict[str, Any]:
    programs = str(PurePosixPath(cni_bin).parent)
    mounts = _mounts(programs, cni_conf)
    common = {"image": image, "imagePullPolicy": "IfNotPresent", "securityContext": {"privileged": True}}
    install = {
        "name": "install",
        **common,
        "command": [f"{PROGRAMS}/install_multus", "--type", "thick", "--dest-dir", cni_bin],
        "resources": {"requests": {"cpu": "10m", "memory": "15Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "programs", "mountPath": programs}],
    }
    daemon = {
        "name": "multus",
        **common,
        "command": [f"{PROGRAMS}/multus-daemon"],
        "env": [{"name": "MULTUS_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": MEMORY,
        "lifecycle": {"postStart": {"exec": {"command": ["/bin/sh", "-c", KEEP]}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in mounts],
    }
    return {
        "serviceAccountName": NAME,
        "hostNetwork": True,
        "hostPID": True,
        "priorityClassName": "system-node-critical",
        "terminationGracePeriodSeconds": 10,
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [install],
        "containers": [daemon],
        "volumes": [volume for volume, _ in mounts],
    }


def _mounts(programs: str, cni_conf: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(volume, mount) pairs: what of the node the daemon sees, and where."""
    seen = (
        ("configuration", cni_conf, CONF_IN_POD, False),
        ("programs", programs, programs, False),
        ("run", "/run", "/host/run", False),
        ("cache", "/var/lib/cni/multus", "/var/lib/cni/multus", False),
        ("attachments", "/etc/cni/multus/net.d", "/etc/cni/multus/net.d", False),
        ("device-info", "/run/k8s.cni.cncf.io", "/run/k8s.cni.cncf.io", False),
        ("kubelet", "/var/lib/kubelet", "/var/lib/kubelet", True),
        ("network-namespaces", "/run/netns", "/run/netns", True),
        ("root", "/", "/hostroot", True),
    )
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for name, on_node, in_pod, follows in seen:
        volume = {"name": name, "hostPath": {"path": on_node, **({} if follows else {"type": "DirectoryOrCreate"})}}
        mount = {"name": name, "mountPath": in_pod, **({"mountPropagation": "HostToContainer"} if follows else {})}
        pairs.append((volume, mount))
    own = {"name": "daemon-config", "configMap": {"name": "multus-daemon-config"}}
    pairs.append((own, {"name": "daemon-config", "mountPath": "/etc/cni/net.d/multus.d", "readOnly": True}))
    return pairs
