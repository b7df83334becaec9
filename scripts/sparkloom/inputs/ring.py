"""Which rings of Sparks without a switch can be served: three, all with a cable to both others.

NVIDIA's guide (connect-three-sparks, 2026-03) and its script know three and no other number: only there has every pair
a cable. Opposite ends of a longer ring would have to be relayed, which RDMA's queue pairs are not. NCCL 2.30.7 puts its
trees off only while its cuMem is on (init.cc, runtimeConn), which SGLang switches off.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.base.document import Fault, Loc
from sparkloom.base.errors import did_you_mean
from sparkloom.inputs.cluster import CAGES, Cluster

SIZE = 3
LONGEST_NAME = 7  # of a rail: the cable's number comes behind it
APART = (
    "have no cable: their data would have to be relayed, and RDMA does not follow IP routes through a third Spark. "
    "NCCL connects trees beside its ring, whatever NCCL_ALGO says, while its cuMem is off, as in SGLang, and ends with "
    "'unhandled system error'; patched builds of it (sparkring) do without. Refused (docs/rings.md)"
)
OPPOSITE = f"opposite Sparks {APART}; take a switch, or pairs, which `sparkloom fabric discover` without `ring` prints"


def faults(cluster: Cluster) -> Iterator[Fault]:
    ring = cluster.fabric.ring
    if not ring:
        return
    loc: Loc = ("fabric", "ring")
    names = [node.name for node in cluster.nodes]
    if len(ring) != SIZE:
        why = OPPOSITE if len(ring) > SIZE else "two Sparks have one cable: leave fabric.ring out"
        yield Fault(loc, f"{len(ring)} Sparks ({', '.join(ring)}); a ring that can be served has three: {why}")
        return
    for number, name in enumerate(ring):
        if name not in names:
            yield Fault((*loc, number), f"'{name}' is no Spark of this inventory{did_you_mean(name, names)}")
        elif name in ring[:number]:
            yield Fault((*loc, number), f"{name} stands there twice; name each Spark once, along the cables")
    if left := [name for name in names if name not in ring]:
        yield Fault(loc, f"{', '.join(left)} is not in it, so no cable leads there; take it out of hosts.yml")
    yield from _rails(cluster)


def _rails(cluster: Cluster) -> Iterator[Fault]:
    if not cluster.fabric.rails:
        yield Fault(("fabric", "rails"), "empty, but fabric.ring names cables; declare the halves of one port")
    for number, rail in enumerate(cluster.fabric.rails):
        loc: Loc = ("fabric", "rails", number)
        if rail.ports:
            yield Fault(
                (*loc, "ports"),
                "with fabric.ring every Spark has its cable to the next one in the rail's own port; take `ports` out "
                "and cable it so",
            )
        if rail.pf[-5:] not in CAGES or rail.pci[-1] not in "01":
            yield Fault(
                (*loc, "pf"),
                f"'{rail.pf}' at {rail.pci} does not say which port is the card's other one; in a ring it ends with "
                f"{' or '.join(CAGES)} and sits at .0 or .1, as on a Spark",
            )
        if len(rail.name) > LONGEST_NAME:
            yield Fault(
                (*loc, "name"),
                f"'{rail.name}' leaves no room for the cable's number; in a ring {LONGEST_NAME} letters at most",
            )
