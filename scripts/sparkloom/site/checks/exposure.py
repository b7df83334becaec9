"""How far somebody gets who takes an engine over: from a privileged pod to its node, from a server's node to all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch
from sparkloom.render.k3s import machines
from sparkloom.render.manifests import pod

NAME = "blast radius"
FIX = (
    "a small machine of any kind in k3s_servers takes the server off the Sparks, before K3s is there (docs/k3s.md); "
    "or cluster.security_mode: device-plugin (docs/what-runs-where.md). Nothing is wrong with what runs"
)


def beside_a_server(cluster: Cluster, launch: Launch) -> Iterator[Finding]:
    """A cluster that was there before is its owner's."""
    if not pod.security(launch, cluster)["privileged"]:
        return
    servers = {machine.name for machine in machines.every(cluster) if machine.role == "server"}
    for rank in launch.ranks:
        name = rank.place.node.name
        if name in servers:
            message = (
                f"rank {rank.index}'s privileged pod runs beside K3s' server: who takes the engine has the cluster"
            )
            yield Finding(name, NAME, message, "a server that serves no model", FIX, "warning")
