"""The node-exporter on each Spark: reads /proc and /sys of its node and one folder of ours, and may do nothing else.

In the pods' network, not the node's: its port then has a policy, where the LAN would reach a port of the node. So it
sees no traffic of the node's interfaces (the collector netdev asks its own network); links and RDMA stand in /sys.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names, pod_defaults
from sparkloom.render.metrics import labels, series

NAME = "sparkloom-hosts"
NOBODY = 65534
TEXTFILES = "/run/sparkloom/metrics"  # on the node; in memory: what a boot made old is gone
TEXTFILE = "textfile"
COLLECTORS = (*series.NODE, "cpu", "hwmon", "thermal_zone", TEXTFILE)
# Of another node-exporter these are not expected: they are off in it unless asked for, or only we have the files.
BESIDE = ("buddyinfo", TEXTFILE)
QUIET = "^(lo|veth.*|cni.*|flannel.*|docker.*|br-.*)$"


def objects(cluster: Cluster, image: str, *, beside: bool) -> list[dict[str, Any]]:
    """`beside`: another node-exporter is on these nodes, so ours tells only what that one does not."""
    template = {
        "metadata": {"labels": {**labels.OURS, **labels.HOSTS}},
        "spec": _pod(cluster, image, BESIDE if beside else COLLECTORS),
    }
    metadata = labels.meta(NAME, cluster.namespace, labels.HOSTS)
    return [names.daemon_set(metadata, labels.HOSTS, template)]


def _pod(cluster: Cluster, image: str, collectors: tuple[str, ...]) -> dict[str, Any]:
    folders = {
        "proc": ("/proc", "Directory"),
        "sys": ("/sys", "Directory"),
        "textfiles": (TEXTFILES, "DirectoryOrCreate"),
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": pod_defaults.on_sparks(cluster),
        "tolerations": [{"operator": "Exists"}],
        "securityContext": pod_defaults.unprivileged(NOBODY),
        "containers": [_container(image, collectors)],
        "volumes": [{"name": name, "hostPath": {"path": path, "type": kind}} for name, (path, kind) in folders.items()],
    }  # fmt: skip


def _container(image: str, collectors: tuple[str, ...]) -> dict[str, Any]:
    words = [
        f"--web.listen-address=:{labels.HOSTS_PORT}",
        "--web.disable-exporter-metrics",
        "--path.procfs=/host/proc",
        "--path.sysfs=/host/sys",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in collectors),
        "--collector.textfile.directory=/host/textfiles",
        *([f"--collector.netclass.ignored-devices={QUIET}"] if "netclass" in collectors else []),
    ]
    mounted = {"proc": "/host/proc", "sys": "/host/sys", "textfiles": "/host/textfiles"}
    return {
        "name": "node-exporter",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": words,
        "ports": [{"name": "metrics", "containerPort": labels.HOSTS_PORT}],
        "resources": {"requests": {"cpu": "20m", "memory": "24Mi"}, "limits": {"memory": "96Mi"}},
        "securityContext": pod_defaults.locked(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": name, "mountPath": path, "readOnly": True,
             **({"mountPropagation": "HostToContainer"} if name == "sys" else {})}
            for name, path in mounted.items()
        ],
    }  # fmt: skip
