"""Three in a ring, plugged otherwise: which cage should go to which, and where the two go now."""

from __future__ import annotations

from collections.abc import Sequence

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Fabric, other_port
from sparkloom.site.cabling.wires import Cage, Wire

End = tuple[str, str]  # a node, and the place of one of its cages
Cables = list[tuple[End, End]]


def asked(fabric: Fabric) -> list[Cables]:
    """The cables that fabric.ring asks for."""
    port = fabric.rails[0]
    return [_along(fabric.ring, _place(port.pci), _place(other_port(port).pci))]


def either(order: Sequence[str], found: list[Cage]) -> list[Cables]:
    """Both ways round, where no file asks for one."""
    first, *_, last = sorted({cage.place for cage in found})
    return [_along(order, first, last), _along(order[::-1], first, last)]


def wrong(ways: list[Cables], joined: list[Wire], found: list[Cage]) -> list[Finding]:
    """The cables that are not there, of the way that most are of."""
    cages = {(cage.node, cage.place): cage for cage in found}
    there = [{(cage.node, cage.place) for cage in wire.cages} for wire in joined]
    missing = min(([ends for ends in way if not any({*ends} <= wire for wire in there)] for way in ways), key=len)
    return [
        Finding(
            one.node,
            "cage",
            f"{_goes(one, joined)}, {_goes(other, joined)}",
            "a cable between the two",
            f"{one} should go to {other}",
        )
        for here, behind in missing
        if (one := cages.get(here)) and (other := cages.get(behind))
    ]


def _along(order: Sequence[str], first: str, last: str) -> Cables:
    following = [*order[1:], order[0]]
    return [((node, first), (other, last)) for node, other in zip(order, following, strict=True)]


def _place(pci: str) -> str:
    return pci.partition(":")[2]


def _goes(cage: Cage, joined: list[Wire]) -> str:
    others = [str(other) for wire in joined if cage in wire.cages for other in wire.cages if other.node != cage.node]
    if not others:
        others = ["nobody of this inventory"] if cage.carrier else []
    return f"{cage} goes to {' and '.join(others)}" if others else f"{cage} has no link"
