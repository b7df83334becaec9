"""No wire joins all Sparks: a ring, a line, or islands; what each is to NCCL, and what would help.

NVIDIA's guide for three (connect-three-sparks) gives every cable two subnets and needs NCCL_IB_SUBNET_AWARE_ROUTING;
four are run by patched NCCL only (FujitsuPolycom/sparkring; MiaAI-Lab's pull request 3 shows how the stock one ends).
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.base.finding import Finding
from sparkloom.site.cabling.wires import Cage, Wire

THREE = (
    "each cable is a fabric of its own there (six subnets, four devices a node), which fabric.yml cannot say yet: take "
    "a switch, or leave one Spark out of hosts.yml and serve on the two others"
)
FOUR = (
    "a switch, or pairs in inventories of their own. Neighbours' data would have to be relayed: RDMA does not follow "
    "IP routes through a third Spark, and although NCCL's ring needs neighbours only, it connects trees too and ends "
    "with an error; only patched builds of it (sparkring) do without"
)


def judge(joined: list[Wire], found: list[Cage]) -> tuple[str, list[Finding]]:
    if not joined:
        return "no fabric", []
    first = joined[0].nodes[0]
    islands = _islands(joined)
    if len(islands) > 1 or any(len(wire.nodes) > 2 for wire in joined):
        groups = [" + ".join(sorted(island)) for island in islands] or []
        if len(islands) == 1:  # a Spark with a cable in each of two networks joins nothing
            groups = [" + ".join(wire.nodes) for wire in joined]
        fix = "one switch, or one VLAN over a link between the switches; or one inventory for each group"
        what = f"{len(groups)} fabrics that do not hear each other: {'; '.join(groups)}"
        return "islands", [Finding(first, "fabric", what, "one that joins all", fix)]
    order = _order(joined)
    if len(joined) == len(order):
        kind = f"a ring of {len(order)}"
        text = " - ".join([*order, order[0]])
        told = [*_ring_cages(joined)] if len(order) == 3 else []
        fix = THREE if len(order) == 3 else FOUR
        return kind, [Finding(first, "ring", f"no switch: {text}", "one wire that joins all", fix), *told]
    return f"a line of {len(order)}", [_line(order, joined, found)]


def _islands(joined: list[Wire]) -> list[set[str]]:
    islands: list[set[str]] = []
    for wire in joined:
        touched = [island for island in islands if island & set(wire.nodes)]
        islands = [island for island in islands if island not in touched]
        islands.append(set(wire.nodes).union(*touched))
    return islands


def _order(joined: list[Wire]) -> list[str]:
    """The nodes along the cables: from one end of a line, or round a ring."""
    beside: dict[str, list[str]] = {}
    for wire in joined:
        one, other = wire.nodes
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    order = [next((node for node, others in beside.items() if len(others) == 1), joined[0].nodes[0])]
    while following := next((node for node in beside[order[-1]] if node not in order), ""):
        order.append(following)
    return order


def _line(order: list[str], joined: list[Wire], found: list[Cage]) -> Finding:
    """Which cable would close the ring, by its two free cages."""
    taken = {(cage.node, cage.name) for wire in joined for cage in wire.cages}
    free = [
        next((str(cage) for cage in found if cage.node == node and (node, cage.name) not in taken), f"{node}: no cage")
        for node in (order[-1], order[0])
    ]
    fix = f"a switch for all; without one the cable from {free[0]} to {free[1]} would close a ring ("
    fix += "three can be served so by NVIDIA's guide, not by this release)" if len(order) == 3 else f"{FOUR})"
    return Finding(order[0], "cable", f"a line: {' - '.join(order)}", "one wire that joins all", fix)


def _ring_cages(joined: list[Wire]) -> Iterator[Finding]:
    """NVIDIA's guide cables every inner cage to the next one's outer; its scripts fail on anything else."""
    for wire in joined:
        if len({cage.place for cage in wire.cages}) == 1:
            fix = "swap the two cables of one of them, so that each cable joins an inner and an outer cage"
            yield Finding(wire.nodes[0], "cage", f"a cable from {wire}", "inner to outer", fix, "warning")
