"""The node-exporter on each Spark: reads /proc and /sys of its node and one folder of ours, and may do nothing else.

In the pods' network, not the node's: its port then has a policy, where the LAN would reach a port of the node. So it
sees no traffic of the node's interfaces (the collector netdev asks its own network); links and RDMA stand in /sys.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode import host_metrics
from sparkloom.render import template
from sparkloom.render.manifests import pod_defaults
from sparkloom.render.metrics import labels, series

NOBODY = 65534
TEXTFILE = "textfile"
COLLECTORS = (*series.NODE, "cpu", "hwmon", "thermal_zone", TEXTFILE)
# Of another node-exporter these are not expected: they are off in it unless asked for, or only we have the files.
UNCOMMON = ("buddyinfo", TEXTFILE)
QUIET = "^(lo|veth.*|cni.*|flannel.*|docker.*|br-.*)$"


def objects(cluster: Cluster, image: str, *, another: bool) -> list[dict[str, Any]]:
    """`another`: a node-exporter of somebody else's is on these nodes, so ours tells only what that one does not."""
    return template.objects(
        "manifests/exporter",
        image=image,
        namespace=cluster.namespace,
        labels={**labels.OURS, **labels.HOSTS},
        selector=labels.HOSTS,
        on_sparks=pod_defaults.on_sparks(cluster),
        args=_args(UNCOMMON if another else COLLECTORS),
        port=labels.HOSTS_PORT,
        textfiles=host_metrics.FOLDER,
        unprivileged=pod_defaults.unprivileged(NOBODY),
        locked=pod_defaults.locked(),
    )


def _args(collectors: tuple[str, ...]) -> list[str]:
    """The folders are those where exporter.yml mounts the node's."""
    return [
        f"--web.listen-address=:{labels.HOSTS_PORT}",
        "--web.disable-exporter-metrics",
        "--path.procfs=/host/proc",
        "--path.sysfs=/host/sys",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in collectors),
        "--collector.textfile.directory=/host/textfiles",
        *([f"--collector.netclass.ignored-devices={QUIET}"] if "netclass" in collectors else []),
    ]
