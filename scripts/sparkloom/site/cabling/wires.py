"""Who hears whom: the cages of every node, and the wires behind them, out of what the nodes read.

A cage is one QSFP port, seen as two halves. A wire joins the cages that hear each other: two by a cable, many by a
switch. Half a word is enough (one end heard the other, or knows its MAC): a frame goes both ways or neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom.site.checks import ports

Facts = Mapping[str, Mapping[str, Any]]  # by node: ports, heard, neighbours, lldp


@dataclass(frozen=True, slots=True)
class Cage:
    """`halves`: the port's functions in the order of their PCI domains."""

    node: str
    name: str
    halves: tuple[ports.Port, ...]

    @property
    def carrier(self) -> bool:
        return any(half["carrier"] for half in self.halves)

    @property
    def speed(self) -> int:
        """Gb/s of its slowest half with a link; 0 for none."""
        return min((half["speed"] // 1000 for half in self.halves if half["carrier"]), default=0)

    @property
    def place(self) -> str:
        """What it is on any node: bus and function, which its halves share."""
        return str(self.halves[0]["pci"]).partition(":")[2]

    def half(self, domain: str) -> ports.Port | None:
        return next((half for half in self.halves if half["pci"].startswith(f"{domain}:")), None)

    def __str__(self) -> str:
        return f"{self.node}'s {self.name}"


@dataclass(frozen=True, slots=True)
class Wire:
    """All cages that hear each other, or one with a link that hears nobody. `switches`: what LLDP named behind it."""

    cages: tuple[Cage, ...]
    switches: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cage.node for cage in self.cages))

    def __str__(self) -> str:
        return " - ".join(map(str, self.cages))


def cages(facts: Facts, management: str) -> list[Cage]:
    found = []
    for node, probe in facts.items():
        known = [port for port in ports.cards(probe) if port["interface"] not in ("", management)]
        found += [Cage(node, _name(halves), halves) for halves in ports.twins(known)]
    return found


def _name(halves: tuple[ports.Port, ...]) -> str:
    """As a person finds it at the back of a Spark, where it is one."""
    if halves[0]["device"] == ports.CONNECTX7 and halves[0]["pci"].endswith((".0", ".1")):
        return "inner cage" if halves[0]["pci"].endswith(".0") else "outer cage"
    return str(halves[0]["interface"])


def wires(facts: Facts, found: list[Cage]) -> list[Wire]:
    """Joined by what was heard; cages without a link are on no wire."""
    linked = [cage for cage in found if cage.carrier]
    group = {id(cage): number for number, cage in enumerate(linked)}
    for one, other in _heard(facts, linked):
        old, new = group[id(one)], group[id(other)]
        group = {cage: new if number == old else number for cage, number in group.items()}
    made: dict[int, list[Cage]] = {}
    for cage in linked:
        made.setdefault(group[id(cage)], []).append(cage)
    return [Wire(tuple(joined), _switches(facts, joined)) for joined in made.values()]


def _heard(facts: Facts, linked: list[Cage]) -> Iterator[tuple[Cage, Cage]]:
    by_port = {(cage.node, half["interface"]): cage for cage in linked for half in cage.halves}
    by_mac = {half["mac"].lower(): cage for cage in linked for half in cage.halves if half["mac"]}
    for node, probe in facts.items():
        pairs = [(row["interface"], by_port.get((row["node"], row["port"]))) for row in probe.get("heard", [])]
        pairs += [(row["interface"], by_mac.get(row["mac"].lower())) for row in probe.get("neighbours", [])]
        for interface, there in pairs:
            here = by_port.get((node, interface))
            if here and there and here.node != there.node:  # a port's halves hear each other, on no wire
                yield here, there


def _switches(facts: Facts, joined: list[Cage]) -> tuple[str, ...]:
    mine = {(cage.node, half["interface"]) for cage in joined for half in cage.halves}
    rows = [row for node, probe in facts.items() for row in probe.get("lldp", []) if (node, row["interface"]) in mine]
    return tuple(dict.fromkeys(str(row["system"] or row["chassis"]) for row in rows))
