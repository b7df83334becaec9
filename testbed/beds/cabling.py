"""Sparks that are nothing but their ports, cabled as one likes: network namespaces, in half a second.

Inside a ConnectX-7 each cage has a small switch, which its two halves and the cable share: here a bridge per cage. A
cable joins the bridges of two cages, a switch is one more bridge; a half whose cage is empty has no carrier. What a
veth cannot say (its PCI function, its speed) stands in a made-up sysfs per Spark, whose links lead to the real one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from testbed.base import names
from testbed.base.shell import out, run

INNER, OUTER = 0, 1
Cage = tuple[str, int]
PREFIX = "slc"  # of our namespaces; the process that made them comes next, so that two of us do not meet
FROM_KERNEL = ("address", "carrier", "flags", "mtu")


def halves(cage: int) -> list[names.Device]:
    """The two ports by which a node sees a cage."""
    return [device for device in names.devices() if not device.is_vf and device.pci.endswith(f".{cage}")]


PORTS = [half.netdev for cage in (INNER, OUTER) for half in halves(cage)]


def _sweep() -> None:
    """Away with the namespaces of a process that was killed before it could close its bench."""
    for namespace in re.findall(rf"^({PREFIX}\d+)-(\S+)", out(["ip", "netns", "list"]), re.M):
        if not Path("/proc", namespace[0].removeprefix(PREFIX)).exists():
            run(["ip", "netns", "delete", "-".join(namespace)], check=False)


class Bench:
    """`folder` takes the made-up sysfs of each Spark. To be closed, whatever happens: its namespaces outlive it."""

    def __init__(self, nodes: Iterable[str], folder: Path) -> None:
        self.folder = folder
        self.namespaces = {node: f"{PREFIX}{os.getpid()}-{node}" for node in nodes}
        self.middle = f"{PREFIX}{os.getpid()}-cables"
        self._short = {node: f"n{number}" for number, node in enumerate(self.namespaces)}  # names have 15 letters
        self._wires: list[str] = []
        _sweep()
        try:
            for namespace in (self.middle, *self.namespaces.values()):
                run(["ip", "netns", "add", namespace])
            for node in self.namespaces:
                self._make(node)
            self.unplug()
        except BaseException:
            self.close()
            raise

    def _ip(self, *lines: str, namespace: str = "") -> None:
        run(["ip", "-n", namespace or self.middle, "-batch", "-"], stdin="\n".join(lines) + "\n")

    def sysfs(self, node: str) -> Path:
        return self.folder / node / "sys"

    def _bridge(self, cage: Cage) -> str:
        return f"{self._short[cage[0]]}c{cage[1]}"

    def _make(self, node: str) -> None:
        namespace, lines = self.namespaces[node], []
        for cage in (INNER, OUTER):
            bridge = self._bridge((node, cage))
            lines.append(f"link add {bridge} up type bridge")
            for number, half in enumerate(halves(cage)):
                far = f"peer name {half.netdev} netns {namespace}"
                lines.append(f"link add {self.end((node, cage), number)} master {bridge} type veth {far}")
                self._describe(node, half)
        self._ip(*lines)

    def _describe(self, node: str, half: names.Device) -> None:
        """What /sys of a Spark says of a port; the kernel's own words where a veth has them."""
        device = self.sysfs(node) / "bus/pci/devices" / half.pci
        link = self.sysfs(node) / "class/net" / half.netdev
        (device / "net" / half.netdev).mkdir(parents=True)
        link.mkdir(parents=True)
        facts = {"class": "0x020000", "vendor": "0x15b3", "device": "0x1021", "sriov_totalvfs": "16"}
        for name, value in facts.items():
            (device / name).write_text(f"{value}\n")
        for name in FROM_KERNEL:
            (link / name).symlink_to(f"/sys/class/net/{half.netdev}/{name}")
        (link / "speed").write_text("-1\n")  # what a port without a link says

    def cable(self, one: Cage, other: Cage) -> None:
        """From cage to cage, without a switch."""
        self._join(self._bridge(one), self._bridge(other))
        self._plug(one)
        self._plug(other)

    def switch(self, *cages: Cage) -> None:
        """All of these on one switch; a second VLAN of it is no different from another switch."""
        switch = f"switch{len(self._wires)}"
        self._ip(f"link add {switch} up type bridge")
        self._wires.append(switch)
        for cage in cages:
            self._join(switch, self._bridge(cage))
            self._plug(cage)

    def _join(self, one: str, other: str) -> None:
        wire = f"w{len(self._wires)}"
        ends = [f"link set {wire}{end} master {bridge} up" for end, bridge in (("a", one), ("b", other))]
        self._ip(f"link add {wire}a type veth peer name {wire}b", *ends)
        self._wires.append(f"{wire}a")

    def _plug(self, cage: Cage) -> None:
        self._ip(*[f"link set {self.end(cage, half)} up" for half in (0, 1)])
        self.speed(cage, 200)

    def speed(self, cage: Cage, gbit: int) -> None:
        node, number = cage
        for half in halves(number):
            (self.sysfs(node) / "class/net" / half.netdev / "speed").write_text(f"{gbit * 1000}\n")

    def unplug(self) -> None:
        """No cable, no switch; the ports are on, as a Spark's are from boot."""
        cages = [(node, cage) for node in self.namespaces for cage in (INNER, OUTER)]
        ends = [f"link set {self.end(cage, half)} down" for cage in cages for half in (0, 1)]
        self._ip(*[f"link delete {name}" for name in self._wires], *ends)
        self._wires = []
        for namespace in self.namespaces.values():
            self._ip(*[f"link set {port} up" for port in PORTS], namespace=namespace)

    def switch_off(self, node: str, cage: int) -> None:
        self._ip(*[f"link set {half.netdev} down" for half in halves(cage)], namespace=self.namespaces[node])

    def configure(self, node: str, *lines: str) -> None:
        """Addresses and routes of this Spark, in the words of ip."""
        self._ip(*lines, namespace=self.namespaces[node])

    def reverse_path(self, mode: int) -> None:
        """1: a Spark takes a packet only by the port that it would answer by; 2, as Ubuntu has it: by any."""
        names = [f"net.ipv4.conf.{name}.rp_filter={mode}" for name in ("all", *PORTS)]
        for node in self.namespaces:
            run([*self.inside(node), "sysctl", "-q", "-w", *names])

    def pull(self, number: int) -> None:
        """The cable that was put in as this one."""
        self._ip(f"link set {self._wires[number]} down")

    def carried(self) -> list[int]:
        """Bytes over each cable so far, both ways."""
        links = json.loads(out(["ip", "-n", self.middle, "-s", "-json", "link", "show"]))
        moved = {link["ifname"]: link["stats64"]["rx"]["bytes"] + link["stats64"]["tx"]["bytes"] for link in links}
        return [moved[wire] for wire in self._wires]

    def inside(self, node: str) -> list[str]:
        """The words before a command that is to run on this Spark."""
        return ["ip", "netns", "exec", self.namespaces[node]]

    @property
    def behind(self) -> list[str]:
        """Likewise for what stands in for a switch; it has the other `end` of every port."""
        return ["ip", "netns", "exec", self.middle]

    def end(self, cage: Cage, half: int = 0) -> str:
        return f"{self._bridge(cage)}h{half}"

    def close(self) -> None:
        for namespace in (self.middle, *self.namespaces.values()):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)
