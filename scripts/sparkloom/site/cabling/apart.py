"""No wire joins all Sparks: a ring, a line, or islands; what each is to NCCL, and which smaller inventories would do.

Three in a ring are served, cabled as NVIDIA's guide (connect-three-sparks) has it: every inner cage to the next one's
outer. Four are run by patched NCCL only (FujitsuPolycom/sparkring; MiaAI-Lab's pull request 3 shows how the stock one
ends).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from sparkloom.base.finding import Finding
from sparkloom.inputs import ring
from sparkloom.site.cabling import plugs
from sparkloom.site.cabling.wires import Cage, Wire

THREE = "three in a ring can be served (fabric.ring), but only all Sparks of hosts.yml, cabled inner cage to outer cage"
EACH = "one-node profiles: each Spark alone in an inventory of its own, which needs no rails"
NAMED = 3
Groups = list[tuple[str, ...]]


def judge(joined: list[Wire], found: list[Cage]) -> tuple[str, list[Finding]]:
    if not joined:
        return "no fabric", []
    first = joined[0].nodes[0]
    islands = _islands(joined)
    if len(islands) > 1 or any(len(wire.nodes) > 2 for wire in joined):
        groups = [" + ".join(sorted(island)) for island in islands] or []
        if len(islands) == 1:  # a Spark with a cable in each of two networks joins nothing
            groups = [" + ".join(wire.nodes) for wire in joined]
        fix = "one switch, or one VLAN over a link between the switches; or an inventory for each group (below)"
        what = f"{len(groups)} fabrics that do not hear each other: {'; '.join(groups)}"
        return "islands", [Finding(first, "fabric", what, "one that joins all", fix)]
    order = _order(joined)
    wrong = plugs.wrong(plugs.either(order, found), joined, found) if len(order) == ring.SIZE else []
    if len(joined) == len(order):
        kind = f"a ring of {len(order)}"
        what = f"{kind} without a switch: {' - '.join([*order, order[0]])}"
        return kind, wrong or [Finding(first, "ring", what, "one wire that joins all", _ways_out(joined, order))]
    what = f"a line: {' - '.join(order)}"
    line = Finding(order[0], "cable", what, "one wire that joins all", _ways_out(joined, order))
    return f"a line of {len(order)}", [*wrong, line]


def splits(joined: list[Wire]) -> list[Groups]:
    """How the cabled Sparks can be parted so that a wire joins each group, or it is one alone; most served first.

    A ring of four has two ways, one of three has three. Only those with the fewest groups are given.
    """
    cabled = list(dict.fromkeys(node for wire in joined for node in wire.nodes))
    found: dict[frozenset[tuple[str, ...]], Groups] = {}
    for number in range(len(joined)):
        groups: Groups = []
        left = list(cabled)
        for wire in [*joined[number:], *joined[:number]]:
            members = tuple(node for node in wire.nodes if node in left)
            if len(members) > 1:
                groups.append(members)
                left = [node for node in left if node not in members]
        groups += [(node,) for node in left]
        found.setdefault(frozenset(tuple(sorted(group)) for group in groups), groups)
    fewest = min(map(len, found.values()), default=0)
    return [groups for groups in found.values() if len(groups) == fewest]


def along(joined: list[Wire], nodes: Sequence[str]) -> list[tuple[Cage, Cage]]:
    """Three in a ring as they can be served: each one's inner cage and the outer one behind its cable; else nothing."""
    if len(joined) != ring.SIZE or {node for wire in joined for node in wire.nodes} != set(nodes):
        return []
    ends = {wire.nodes: sorted(wire.cages, key=lambda cage: cage.place) for wire in joined}
    if any(len(cages) != 2 or cages[0].place == cages[1].place for cages in ends.values()):
        return []
    behind = {inner.node: (inner, outer) for inner, outer in ends.values()}
    if set(behind) != set(nodes):  # two cables from one Spark's inner cage cannot be, but what is read can be wrong
        return []
    order = [nodes[0]]
    while (following := behind[order[-1]][1].node) not in order:
        order.append(following)
    return [behind[node] for node in order] if len(order) == ring.SIZE else []


def _ways_out(joined: list[Wire], order: list[str]) -> str:
    """Why it is refused, and the three things that can be done instead."""
    parts = [[" + ".join(group) for group in groups if len(group) > 1] for groups in splits(joined)]
    named = "; or ".join(" and ".join(pairs) for pairs in parts)
    pairs = f"two of them by the cable between them ({named}), the third left out of hosts.yml"
    if len(order) > 3:
        pairs = f"pairs by the cables between them, an inventory each ({named})"
    why = THREE if len(order) == 3 else f"{_apart(joined, order)} {ring.APART}"
    return f"{why}. Three ways out: (1) a switch, with one cable from each; (2) {pairs}; (3) {EACH}"


def _apart(joined: list[Wire], order: list[str]) -> str:
    """The Sparks that no cable joins, two by two; the first of them where they are many."""
    cabled = {frozenset(wire.nodes) for wire in joined}
    pairs = [f"{one} and {other}" for one, other in combinations(order, 2) if {one, other} not in cabled]
    return "; ".join(pairs[:NAMED] + (["..."] if len(pairs) > NAMED else []))


def _islands(joined: list[Wire]) -> list[set[str]]:
    islands: list[set[str]] = []
    for wire in joined:
        touched = [island for island in islands if island & set(wire.nodes)]
        islands = [island for island in islands if island not in touched]
        islands.append(set(wire.nodes).union(*touched))
    return islands


def _order(joined: list[Wire]) -> list[str]:
    """The nodes along the cables: from one end of a line, or round a ring."""
    neighbours: dict[str, list[str]] = {}
    for wire in joined:
        one, other = wire.nodes
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    order = [next((node for node, others in neighbours.items() if len(others) == 1), joined[0].nodes[0])]
    while following := next((node for node in neighbours[order[-1]] if node not in order), ""):
        order.append(following)
    return order
