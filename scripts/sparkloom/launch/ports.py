"""Every TCP port of a pod, of the engines and of ours: reserved here, and a clash is refused by name.

Where two want one, the second dies late and says little: SGLang with DP attention waits 30 s for the port behind the
rendezvous, which the supervisors held, and ends with "is not available".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkloom.base.errors import Problem
from sparkloom.inputs.profile import LoadedSketch

RENDEZVOUS = 20000  # the ranks of one group meet here, on the first rail
CONTROL = 20100  # our supervisors: TCP on the first rail, UDP echoes on all
PROBES = 20101  # and the kubelet's questions to each of them, on the pod's own interface
RPC = 50052  # llama.cpp's lent memory, on the first rail


@dataclass(frozen=True, slots=True)
class Port:
    """`count` ports in a row. `said`: the flag or `env.NAME` that moves them, where a profile can."""

    number: int
    what: str
    said: str = ""
    count: int = 1

    @property
    def last(self) -> int:
        return self.number + self.count - 1

    def __str__(self) -> str:
        numbers = str(self.number) if self.count == 1 else f"{self.number} to {self.last}"
        return f"{numbers} ({self.what})"


OURS = (Port(CONTROL, "Sparkloom's supervisors"), Port(PROBES, "Sparkloom's probes"))


def clashes(taken: Sequence[Port]) -> list[tuple[Port, Port]]:
    """Pairs that want the same number; of each the one that a profile can move comes first."""
    pairs = [
        (one, other)
        for number, one in enumerate(taken)
        for other in taken[number + 1 :]
        if one.number <= other.last and other.number <= one.last
    ]
    return [pair if pair[0].said or not pair[1].said else (pair[1], pair[0]) for pair in pairs]


def faults(loaded: LoadedSketch, taken: Sequence[Port]) -> list[Problem]:
    """One sentence per clash, and per number that is no port, at the line that says it."""
    found = [
        (port, f"{port.number} is no port; expected 1 to 65535")
        for port in taken
        if not 0 < port.number <= port.last <= 65535
    ]
    everything = ", ".join(str(port) for port in sorted(taken, key=lambda port: port.number))
    found += [
        (one, f"port {max(one.number, other.number)} is wanted twice: by {one} and by {other}; taken are {everything}")
        for one, other in clashes(taken)
    ]
    return [
        loaded.document.problem(_place(port), f"{port.said or port.what}: {text}", "port-clash") for port, text in found
    ]


def _place(port: Port) -> tuple[str, ...]:
    if port.said.startswith("env."):
        return ("env", port.said.removeprefix("env."))
    return ("launch", port.said) if port.said else ("launch",)
