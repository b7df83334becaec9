"""What the wires are together, and which cable, speed or half is not as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import SPEEDS, Fabric
from sparkloom.launch.fabric import RING_NCCL
from sparkloom.site.cabling import apart, plugs
from sparkloom.site.cabling.wires import Cage, Facts, Wire, cages, wires
from sparkloom.site.checks.ports import DRAIN, Port, absent

SWITCH = "a switch"


@dataclass(frozen=True, slots=True)
class Found:
    """`used`: the cage that each node's rails are in, empty where no fabric.yml can serve what was found.

    `splits`: then, the ways to part the Sparks into smaller inventories, each judged like a whole one. `ring`: three
    along their cables, whose used cages are those that lead to the next.
    """

    nodes: tuple[str, ...]
    kind: str
    wires: list[Wire]
    cages: list[Cage]
    used: dict[str, Cage] = field(default_factory=dict)
    rail_gbit: int = 200
    findings: list[Finding] = field(default_factory=list)
    splits: list[list[Found]] = field(default_factory=list)
    ring: tuple[str, ...] = ()


def judge(nodes: Sequence[str], facts: Facts, management: str, asked: Fabric | None = None) -> Found:
    """`nodes`: those of the inventory, each with its facts or without. `asked`: what its fabric.yml says already."""
    found = cages(facts, management)
    made = wires(facts, found)
    findings = [*_unread(nodes, facts), *_uncabled(facts, found)]
    joined = [wire for wire in made if len(wire.nodes) > 1]
    cabled = {node for wire in joined for node in wire.nodes}
    whole = [wire for wire in joined if set(wire.nodes) == cabled]
    if len(nodes) == 1:
        return Found(tuple(nodes), "one Spark", made, found)
    cables = apart.along(joined, nodes)
    if asked and asked.ring and not cables and not any(set(wire.nodes) == set(nodes) for wire in joined):
        findings += [*_silent(made, cabled), *plugs.wrong(plugs.asked(asked), joined, found)]
        return Found(tuple(nodes), "not the ring that fabric.yml asks for", made, found, findings=findings)
    if whole:
        used = _used(max(whole, key=lambda wire: _usual(wire.cages)))
        gbit, slow = _speed(used)
        kind = SWITCH if len(cabled) > 2 or whole[0].switches else "one cable between two"
        findings += [
            *_silent(made, cabled),
            *_switched(whole, used),
            *_misplaced(used, asked),
            *_halves(used),
            *_functionless(used),
            *slow,
        ]
        return Found(tuple(nodes), kind, made, found, used, gbit, findings)
    if cables:
        return _ring(tuple(nodes), made, found, cables, findings)
    kind, more = apart.judge(joined, found)
    findings += [*_silent(made, cabled), *more]
    parted = [
        [judge(group, {node: facts[node] for node in group}, management) for group in groups]
        for groups in apart.splits(joined)
    ]
    return Found(tuple(nodes), kind, made, found, findings=findings, splits=parted)


def _ring(
    nodes: tuple[str, ...], made: list[Wire], found: list[Cage], cables: list[tuple[Cage, Cage]], read: list[Finding]
) -> Found:
    """Three that are served by fabric.ring, judged at both ends of each cable."""
    order = tuple(inner.node for inner, _ in cables)
    used, others = {inner.node: inner for inner, _ in cables}, {outer.node: outer for _, outer in cables}
    (gbit, slow), (other, slow_too) = _speed(used), _speed(others)
    what = f"a ring of 3 without a switch: {' - '.join([*order, order[0]])}"
    fix = f"engine.carries: [nccl-{RING_NCCL}] in the profile of an image that has it; docs/rings.md"
    expected = f"an image with NCCL {RING_NCCL} or newer, which takes the port that leads to the peer"
    findings = [
        *read,
        *_silent(made, set(order)),
        *_halves(used),
        *_halves(others),
        *_functionless(used),
        *_functionless(others),
        *slow,
        *slow_too,
        Finding(order[0], "ring", what, expected, fix, "info"),
    ]
    return Found(nodes, "a ring of 3", made, found, used, min(gbit, other), findings, ring=order)


def _unread(nodes: Sequence[str], facts: Facts) -> Iterator[Finding]:
    for node in nodes:
        if node not in facts:
            yield Finding(node, "connection", "no answer", "what its ports see", "playbooks/preflight.yml says why")


def _uncabled(facts: Facts, found: list[Cage]) -> Iterator[Finding]:
    if len(facts) < 2:
        return
    for node, probe in facts.items():
        mine = [cage for cage in found if cage.node == node]
        if not mine and (gone := absent(node, "cable", probe)):
            yield gone
        elif not any(cage.carrier for cage in mine):
            what = f"no link in {' or '.join(cage.name for cage in mine)}" if mine else "no ConnectX-7 port"
            fix = "its cable, at both ends; a switch's port that is switched off looks the same"
            yield Finding(node, "cable", what, "a link", fix)


def _silent(made: list[Wire], cabled: set[str]) -> Iterator[Finding]:
    """A link behind which nobody of this inventory is."""
    for wire in made:
        if len(wire.nodes) > 1:
            continue
        cage = wire.cages[0]
        behind = f"{', '.join(wire.switches)} and nobody" if wire.switches else "nobody"
        what = f"a link in its {cage.name}, with {behind} of this inventory behind it"
        fix = "the other end: a machine that is not in hosts.yml, or a switch's port in another VLAN"
        severity = "warning" if cage.node in cabled else "error"
        yield Finding(cage.node, "cable", what, "another Spark", fix, severity)  # type: ignore[arg-type]


def _usual(joined: Sequence[Cage]) -> int:
    """How many of them are in the same place, which is what a site should have."""
    return Counter(cage.place for cage in joined).most_common(1)[0][1]


def _used(wire: Wire) -> dict[str, Cage]:
    """One cage per node: of two on the same wire the one that is like the others'; the inner one when none is."""
    counts = Counter(cage.place for cage in wire.cages)
    ordered = sorted(wire.cages, key=lambda cage: (-counts[cage.place], cage.halves[0]["pci"]))
    chosen = {cage.node: cage for cage in reversed(ordered)}  # the first of each
    return {node: chosen[node] for node in wire.nodes}


def usual(used: dict[str, Cage]) -> Cage:
    """The cage that stands for all in fabric.yml."""
    counts = Counter(cage.place for cage in used.values())
    return min(used.values(), key=lambda cage: (-counts[cage.place], cage.halves[0]["pci"]))


def _misplaced(used: dict[str, Cage], asked: Fabric | None) -> Iterator[Finding]:
    """In another cage than most, and not because fabric.yml asks for it there."""
    common = usual(used)
    for node, cage in used.items():
        told = [rail.ports[node].pci for rail in asked.rails if node in rail.ports] if asked else []
        if cage.place != common.place and cage.place not in [pci.partition(":")[2] for pci in told]:
            fix = f"move it to the {common.name}, or keep it: fabric.yml then names it for this node (ports)"
            others = ", ".join(other for other, its in used.items() if its.place == common.place)
            what = f"the cable is in the {cage.name}"
            yield Finding(node, "cage", what, f"the {common.name}, as on {others}", fix, "warning")


def _switched(whole: list[Wire], used: dict[str, Cage]) -> Iterator[Finding]:
    """More cables than rails, and a fabric over more than one switch."""
    chosen = {id(cage) for cage in used.values()}
    for wire in whole:
        for cage in wire.cages:
            if id(cage) not in chosen:
                fix = "nothing, or take it out: both cages share the same two PCIe links"
                what = f"a second cable, in the {cage.name}"
                yield Finding(cage.node, "cage", what, "one, which carries all that a Spark can", fix, "info")
        if len(wire.switches) > 1:
            fix = "the link between them carries every pair that it parts: as many cables as Sparks on one side"
            what = f"the Sparks are on {' and '.join(wire.switches)}"
            yield Finding(wire.nodes[0], "switch", what, "one switch", fix, "warning")


def _halves(used: dict[str, Cage]) -> Iterator[Finding]:
    """Both halves of a cage are there, and both have the cable's link."""
    for node, cage in used.items():
        if len(cage.halves) < 2:
            fix = "one rail is written; dmesg for mlx5_core says why the other half did not start"
            what = f"one half of the {cage.name}: {cage.halves[0]['interface']}"
            yield Finding(node, "halves", what, "two", fix, "warning")
        for half in cage.halves:
            if not half["carrier"]:
                fix = f"both halves share the cable, its ConnectX-7 is stuck: {DRAIN}"
                yield Finding(node, "halves", f"{half['interface']} without carrier", "the other half's link", fix)


def barren(used: dict[str, Cage]) -> list[Port]:
    """Halves of the usual cage that offer no virtual functions on any node."""
    return [
        half
        for half in usual(used).halves
        if not any(
            mine["total_vfs"]
            for cage in used.values()
            if (mine := cage.half(half["pci"].partition(":")[0])) is not None
        )
    ]


def _functionless(used: dict[str, Cage]) -> Iterator[Finding]:
    for half in barren(used):
        what = f"{half['interface']} offers no virtual functions, on any node"
        fix = "SRIOV_EN and NUM_OF_VFS in its firmware (mlxconfig); until then fabric.yml says attach: pf for it"
        yield Finding(next(iter(used)), "functions", what, "some", fix, "warning")


def _speed(used: dict[str, Cage]) -> tuple[int, list[Finding]]:
    """The speed of most, and who differs from it."""
    counts = Counter(cage.speed for cage in used.values() if cage.speed in SPEEDS)
    common = max(counts, key=lambda speed: (counts[speed], speed), default=200)
    findings = []
    for node, cage in used.items():
        if cage.speed != common:
            fix = "the switch port's speed, the cable; a stuck ConnectX-7 comes back by powering both ends off"
            what, wanted = f"the {cage.name} at {cage.speed} Gb/s", f"{common} Gb/s as on the others"
            findings.append(Finding(node, "speed", what, wanted, fix))
    return common, findings
