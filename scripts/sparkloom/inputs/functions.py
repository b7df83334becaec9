"""Which functions of a rail are whose: those that serving pods may get, and those that the hosts are given ready.

A site with one profile has two in use. A site with a list has every one that a group may get, whether one has it yet or
not: a group that comes later changes nothing on a rail that carries an engine.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from sparkloom.inputs import addressing
from sparkloom.inputs.cluster import Cluster, Rail


def of_pods(cluster: Cluster) -> tuple[int, ...]:
    """Functions of the rails that serving pods may get, the inventory's `serving_vf` first; none without rails.

    A whole port is one thing: where a half has no functions, one group of several Sparks can be on each of them.
    """
    rails = cluster.fabric
    if not rails.rails:
        return ()
    if any(rails.whole(rail) for rail in rails.rails):
        return (rails.serving_vf,)
    others = [vf for vf in range(rails.vfs_per_rail) if vf not in (rails.serving_vf, rails.check_vf)]
    return (rails.serving_vf, *(vf for vf in others if has_room(cluster, vf)))


def has_room(cluster: Cluster, vf: int) -> bool:
    """Whether every rail's subnet has an address for that function of every Spark."""
    highest = max(node.fabric_index for node in cluster.nodes)
    width = addressing.block(highest)
    networks = [IPv4Network(cluster.fabric.split(rail)[0].subnet) for rail in cluster.fabric.rails]
    return all(
        addressing.address(cluster.fabric, network, highest, vf, width) < int(network.broadcast_address)
        for network in networks
    )


def in_use(cluster: Cluster, rail: Rail) -> tuple[int, ...]:
    """What each Spark has an address for on that rail. A whole port has one place, that of the serving function."""
    if cluster.fabric.whole(rail):
        return (cluster.fabric.serving_vf,)
    more = of_pods(cluster) if cluster.several else ()
    return tuple(sorted({*addressing.vfs_in_use(cluster.fabric), *more}))
