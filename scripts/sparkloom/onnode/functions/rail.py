"""The functions of one rail's port: their count, names and MACs, as planned or as they were before.

A pod that is deleted by force, or a container runtime that is killed, can leave its network namespace behind with the
function in it: the host then shows "Link not found" and the next pod cannot start (facts from multus #1134, microk8s
#1468, sriov-cni #349). A namespace counts as dead when no process is in it and it is older than a pod's start takes.
Every other namespace is only looked at.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import FunctionsError, Steps, ask
from sparkloom.onnode.host import kernel
from sparkloom.onnode.host.read import number, run, running, text
from sparkloom.onnode.interfaces import OWN_ADDRESS_ONLY

SYSCTL = "/usr/lib/systemd/systemd-sysctl"
FIRMWARE = (
    "switch SR-IOV on in its firmware and power the node off and on (mlxconfig -d {pci} set SRIOV_EN=1 "
    "NUM_OF_VFS={wanted}), or lower fabric.vfs_per_rail in fabric.yml"
)
PROC = Path("/proc")
# Where container runtimes and `ip netns` pin a namespace that has no process.
PINNED = ("/run/netns", "/var/run/netns", "/run/docker/netns")


def wait_for(path: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < until:  # noqa: PTH110 - no error is an answer here
        time.sleep(0.2)
    return os.path.exists(path)  # noqa: PTH110


def settle() -> None:
    """udev names new functions too: let it end first, or its name comes after the plan's and wins."""
    run("udevadm", "settle", "--timeout=60", timeout=90)


def set_sysctls(interface: str) -> None:
    """At boot udev sets what /etc/sysctl.d says for a new interface, by the name that it had then."""
    run(SYSCTL, f"--prefix=net/ipv4/conf/{interface}", timeout=60)


def is_new(interface: str) -> bool:
    """Whether the kernel made it anew here, as when it comes from another namespace: all that we set is at its default.

    A hand changes one setting, which the doctor sees.
    """
    conf = {key: kernel.live(f"net.ipv4.conf.{interface}.{key}") for key in OWN_ADDRESS_ONLY}
    return conf != OWN_ADDRESS_ONLY and conf == {key: kernel.live(f"net.ipv4.conf.default.{key}") for key in conf}


class Rail:
    def __init__(self, plan: dict[str, Any], sysfs: Path) -> None:
        self.plan, self.net = plan, sysfs / "class/net"
        self.pf: Path = self.net / plan["pf"]

    def as_planned(self) -> Steps:
        yield from self.make()
        yield from self.name_functions()
        yield from self.set_macs()
        yield from common.as_planned(self.plan, self.here())

    def make(self) -> Steps:
        """Create the functions when there are none; what exists is never torn down, a pod may hold it."""
        device, wanted = self.pf / "device", self.plan["count"]
        there, most = number(device / "sriov_numvfs"), number(device / "sriov_totalvfs")
        if there >= wanted:
            return
        name = self.plan["pf"]
        if wanted > most:
            advice = FIRMWARE.format(pci=self.plan.get("pci", name), wanted=wanted)
            raise FunctionsError(f"{name} offers {most} functions, the plan wants {wanted}: {advice}")
        if there:
            raise FunctionsError(
                f"{name} has {there} functions, the plan wants {wanted}: reboot the node, it starts from none"
            )
        yield f"{name}: {wanted} functions made", self._make

    def _make(self) -> None:
        self.remember()
        common.ip("link", "set", self.plan["pf"], "up")
        (self.pf / "device/sriov_numvfs").write_text(f"{self.plan['count']}\n")
        for function in self.plan["functions"]:
            wait_for(self.home(function["vf"]), 30)
        settle()

    def home(self, vf: int) -> Path:
        return self.pf / f"device/virtfn{vf}/net"

    def name_functions(self) -> Steps:
        """udev's names differ between releases; the plan's name wins."""
        for function in self.plan["functions"]:
            home, wanted = self.home(function["vf"]), function["interface"]
            if not self.address(wanted) and home.exists():
                for name in [entry.name for entry in home.iterdir()]:
                    yield f"{name}: renamed {wanted}", partial(self.rename, name, wanted)

    def rename(self, name: str, wanted: str) -> None:
        self.remember()
        common.ip("link", "set", name, "down")
        common.ip("link", "set", name, "name", wanted)
        set_sysctls(wanted)
        # A running networkd knows it by its name. At boot it waits for us, and networkctl would wait for it.
        if running("systemd-networkd.service"):
            run("networkctl", "reconfigure", wanted, timeout=20)

    def address(self, interface: str) -> str:
        """Nothing for a function that is not on the host, or that leaves it at this moment."""
        return text(self.net / interface / "address")

    def here(self) -> list[dict[str, Any]]:
        """The planned functions that are on the host."""
        return [function for function in self.plan["functions"] if self.address(function["interface"])]

    def settle_in(self) -> Steps:
        """A pod that ends gives its function back under a passing name, and udev sets what it has for that name."""
        for name in [function["interface"] for function in self.here()]:
            if is_new(name):
                yield f"{name}: kernel settings, as it came from a pod", partial(set_sysctls, name)

    def set_macs(self) -> Steps:
        for function in self.plan["functions"]:
            name, mac = function["interface"], function["mac"]
            if self.address(name) not in ("", mac):
                yield f"{name}: MAC {mac}", partial(self.set_mac, function["vf"], name, mac)

    def set_mac(self, vf: int, interface: str, mac: str) -> None:
        """By the function itself, or where its driver leaves that to the parent, through the parent and a new start.

        Up again only if it was: the netplan file starts it, and an undo finds it as it began.
        """
        self.remember()
        was_up = int(text(self.net / interface / "flags") or "1", 16) & 1
        common.ip("link", "set", interface, "down")
        try:
            common.ip("link", "set", interface, "address", mac)
        except FunctionsError:
            common.ip("link", "set", self.plan["pf"], "vf", str(vf), "mac", mac)
            device = (self.pf / f"device/virtfn{vf}").resolve()
            driver = (device / "driver").resolve()
            (driver / "unbind").write_text(device.name)
            (driver / "bind").write_text(device.name)
        if was_up:
            common.ip("link", "set", interface, "up")

    # --- where it began -------------------------------------------------------------------------------------------

    def remember(self) -> None:
        """Count, names and MACs before the first change; an undo finds all of it remembered."""
        functions = {}
        for home in self.pf.glob("device/virtfn*/net"):
            for entry in home.iterdir():
                functions[home.parent.name.removeprefix("virtfn")] = [entry.name, self.address(entry.name)]
        facts = {"count": number(self.pf / "device/sriov_numvfs"), "up": self.is_up(), "functions": functions}
        common.remember(self.plan["pf"], facts)

    def is_up(self) -> bool:
        """Set up by a person or a driver; a port that is down must be up while functions are made."""
        return bool(int(text(self.pf / "flags") or "1", 16) & 1)

    def in_use(self) -> list[str]:
        """Planned functions that are there but not on the host, or the whole port: a pod holds them."""
        if self.plan.get("whole"):
            return [] if self.pf.exists() else [self.plan["pf"]]
        there = number(self.pf / "device/sriov_numvfs")
        return [f["interface"] for f in self.plan["functions"] if f["vf"] < there and not self.address(f["interface"])]

    def as_before(self) -> Steps:
        """Nothing is taken from a pod: `in_use` is asked for all rails first."""
        was = common.remembered().get(self.plan["pf"], {})
        if "count" not in was:
            return
        count = self.pf / "device/sriov_numvfs"
        if number(count) != was["count"]:
            yield f"{self.plan['pf']}: {was['count']} functions, as before", partial(self._make_again, was["count"])
        planned = {str(f["vf"]): f["interface"] for f in self.plan["functions"]}
        for vf, (name, mac) in was["functions"].items():
            now = planned.get(vf, name)
            if self.address(now) not in ("", mac):
                yield f"{now}: MAC {mac}, as before", partial(self.set_mac, int(vf), now, mac)
            if now != name and self.address(now):
                yield f"{now}: renamed {name}, as before", partial(self.rename, now, name)
        yield from common.as_before(self.plan, was, number(count))
        if not was["up"] and self.is_up():
            yield f"{self.plan['pf']}: down, as before", partial(common.ip, "link", "set", self.plan["pf"], "down")

    def _make_again(self, count: int) -> None:
        file = self.pf / "device/sriov_numvfs"
        file.write_text("0\n")
        if count:
            file.write_text(f"{count}\n")
            settle()


def find(wanted: dict[str, str], pci: dict[str, str], young: float) -> list[tuple[str, str, str]]:
    """(namespace's path, name there, planned name) of each wanted {MAC: planned name} in a dead namespace.

    One younger than `young` seconds may be a starting pod's, which has its function before its first process.
    """
    alive = {known.st_ino for path in PROC.glob("[0-9]*/ns/net") if (known := stat(path))}
    lost = []
    for path in namespaces():
        known = stat(path)
        if not known or known.st_ino in alive or time.time() - changed(path) < young:
            continue
        for link in ask("nsenter", f"--net={path}", "ip", "-json", "-details", "link", "show") or []:
            name = pci.get(link.get("parentdev", "")) or wanted.get(str(link.get("address", "")).lower())
            if name:
                lost.append((str(path), link["ifname"], name))
    return lost


def namespaces() -> Iterator[Path]:
    """Each namespace once: those that are pinned to a path, and those that an open file of a process keeps."""
    seen: set[int] = set()
    pinned = (entry for folder in PINNED for entry in sorted(Path(folder).glob("*")))
    opened = (entry for folder in PROC.glob("[0-9]*/fd") for entry in descriptors(folder))
    for path in (*pinned, *opened):
        if (known := stat(path)) and known.st_ino not in seen:
            seen.add(known.st_ino)
            yield path


def descriptors(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if re.match(r"net:\[\d+\]$", target):
            yield folder / name


def stat(path: Path) -> os.stat_result | None:
    """With the namespace's own number, the same by whichever path it is reached; None where it is gone."""
    try:
        return path.stat()
    except OSError:
        return None


def changed(path: Path) -> float:
    return known.st_ctime if (known := stat(path)) else time.time()


def bring_home(namespace: str, there: str, name: str) -> None:
    """Down, named as planned, and into the first process' namespace: the host's."""
    inside = ("nsenter", f"--net={namespace}", "ip", "link", "set")
    renamed = [("dev", there, "name", name)] if there != name else []
    for step in (("dev", there, "down"), *renamed, ("dev", name, "netns", "1")):
        common.call(*inside, *step)
