"""The small types that a launch is made of. Every value knows where it came from."""

from __future__ import annotations

from dataclasses import dataclass

from sparkloom.inputs.cluster import Node
from sparkloom.inputs.profile import FlagValue, Parallel
from sparkloom.launch.fabric import Endpoint


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from (`profile`, `set`, `fleet`, `topology`, `fabric`, `engine`, `platform`), and why."""

    kind: str
    where: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One engine flag, in the spelling of the release, or one that only rules read."""

    name: str
    value: FlagValue
    origin: Origin


@dataclass(frozen=True, slots=True)
class EnvVar:
    name: str
    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Place:
    """Where one rank runs and how the others reach it."""

    rank: int
    node: Node
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    parallel: Parallel
    places: tuple[Place, ...]
    lossless: bool = False
    ring: bool = False  # by cables of a ring, more than two ranks: each pair on subnets of its own
    egress: bool = False  # its pods may connect to more than the rails and the cluster's DNS

    @property
    def head(self) -> Place:
        return self.places[0]

    @property
    def distributed(self) -> bool:
        return len(self.places) > 1

    def address(self, place: Place) -> str:
        """The address that peers use: the first rail's, or loopback when the rank is alone.

        In a ring a route in each pod leads to it over the cable that joins the two (launch/fabric.py, routes).
        """
        return place.endpoints[0].address if place.endpoints else "127.0.0.1"
