#!/usr/bin/env python3
"""Make the virtual functions that /etc/sparkloom/functions.json plans: count, name and MAC. Prints what it changed.

Runs at boot before the network and whenever the fabric role runs; does nothing when all is as planned. A function that
moved into a pod is left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PLAN = Path("/etc/sparkloom/functions.json")
SYSCTL = "/usr/lib/systemd/systemd-sysctl"


class Refused(Exception):
    """The plan cannot be met; the message says what was found and what to change."""


def ip(*args: str) -> None:
    done = subprocess.run(["ip", *args], capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"ip {' '.join(args)}: {done.stderr.strip()}")


def number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def wait_for(path: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < until:  # noqa: PTH110 - no error is an answer here
        time.sleep(0.2)
    return os.path.exists(path)  # noqa: PTH110


def settle() -> None:
    """udev names new functions too: let it end first, or its name comes after the plan's and wins."""
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["udevadm", "settle", "--timeout=60"], capture_output=True)


def set_sysctls(interface: str) -> None:
    """At boot udev sets what /etc/sysctl.d says for a new interface, by the name that it had then."""
    with contextlib.suppress(FileNotFoundError):
        subprocess.run([SYSCTL, f"--prefix=net/ipv4/conf/{interface}"], capture_output=True)


class Rail:
    def __init__(self, plan: dict, sysfs: Path, dry: bool) -> None:
        self.plan, self.dry, self.net = plan, dry, sysfs / "class/net"
        self.pf = self.net / plan["pf"]

    def make(self) -> list[str]:
        """Create the functions when there are none; what exists is never torn down, a pod may hold it."""
        device, wanted = self.pf / "device", self.plan["count"]
        there, most = number(device / "sriov_numvfs"), number(device / "sriov_totalvfs")
        if there >= wanted:
            return []
        name = self.plan["pf"]
        if wanted > most:
            raise Refused(
                f"{name} offers {most} functions, the plan wants {wanted}: SRIOV_EN and NUM_OF_VFS (mlxconfig)"
            )
        if there:
            raise Refused(
                f"{name} has {there} functions, the plan wants {wanted}: reboot the node, it starts from none"
            )
        if not self.dry:
            ip("link", "set", name, "up")
            (device / "sriov_numvfs").write_text(f"{wanted}\n")
        return [f"{name}: {wanted} functions made"]

    def home(self, function: dict) -> Path:
        return self.pf / f"device/virtfn{function['vf']}/net"

    def wait_for_functions(self) -> None:
        for function in self.plan["functions"]:
            wait_for(self.home(function), 30)
        settle()

    def name_functions(self) -> list[str]:
        """udev's names differ between releases; the plan's name wins."""
        changes = []
        for function in self.plan["functions"]:
            home = self.home(function)
            if self.address(function["interface"]) is not None or not home.exists():
                continue
            for found in [entry.name for entry in home.iterdir()]:
                changes.append(f"{found}: renamed {function['interface']}")
                if not self.dry:
                    ip("link", "set", found, "down")
                    ip("link", "set", found, "name", function["interface"])
                    set_sysctls(function["interface"])
        return changes

    def address(self, interface: str) -> str | None:
        """None for a function that is not on the host, or that leaves it at this moment."""
        try:
            return (self.net / interface / "address").read_text().strip()
        except OSError:
            return None

    def set_macs(self) -> list[str]:
        changes = []
        for function in self.plan["functions"]:
            interface, mac = function["interface"], function["mac"]
            if self.address(interface) in (None, mac):
                continue
            changes.append(f"{interface}: MAC {mac}")
            if not self.dry:
                self.set_mac(function["vf"], interface, mac)
        return changes

    def set_mac(self, vf: int, interface: str, mac: str) -> None:
        """By the function itself, or where its driver leaves that to the parent, through the parent and a new start."""
        ip("link", "set", interface, "down")
        try:
            ip("link", "set", interface, "address", mac)
        except Refused:
            ip("link", "set", self.plan["pf"], "vf", str(vf), "mac", mac)
            device = (self.pf / f"device/virtfn{vf}").resolve()
            driver = (device / "driver").resolve()
            (driver / "unbind").write_text(device.name)
            (driver / "bind").write_text(device.name)
        ip("link", "set", interface, "up")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sysfs", type=Path, default=Path("/sys"), help="where sysfs is mounted")
    parser.add_argument("--wait", type=float, default=0, help="seconds to wait for the parents to appear")
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    args = parser.parse_args()
    changes = []
    try:
        for plan in json.loads(PLAN.read_text())["rails"]:
            rail = Rail(plan, args.sysfs, args.check)
            if not wait_for(rail.pf, args.wait):
                raise Refused(f"no {plan['pf']}: fabric.rails[].pf in the inventory's fabric.yml, or the card is gone")
            made = rail.make()
            if made and not args.check:
                rail.wait_for_functions()
            changes += made + rail.name_functions() + rail.set_macs()
    except (Refused, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(f"changed: {change}" for change in changes) or "as planned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
