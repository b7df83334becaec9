"""Runs in namespaces of its own, beside a real networkd: which links notice a change of the rails. Prints JSON."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from sparkloom.onnode.host import (
    backup,
    generated,
    networkd,
)

WAY, RAIL = "enP7s7", "enp1s0f0np0"


class Module:
    """No systemd runs here: when networkd read its files is known by whoever told it to."""

    read = 0.0

    def run_command(self, argv: list[str], check_rc: bool = False) -> tuple[int, str, str]:
        if tuple(argv) == networkd.ASKED:
            return 0, f"StateChangeTimestamp=Sun {datetime.fromtimestamp(self.read, UTC):%Y-%m-%d %H:%M:%S.%f} UTC", ""
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=check_rc)
        return done.returncode, done.stdout, done.stderr


def sh(script: str) -> None:
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True, timeout=30)


def spoken(name: str, mtu: int, cidr: str) -> backup.File:
    lines = [
        "[Match]",
        f"Name={name}",
        "[Link]",
        f"MTUBytes={mtu}",
        "[Network]",
        "LinkLocalAddressing=no",
        f"Address={cidr}",
    ]
    return backup.File("\n".join([*lines, ""]).encode())


def place(name: str) -> str:
    return f"run/systemd/network/10-netplan-{name}.network"


def has(name: str, cidr: str) -> bool:
    return cidr in subprocess.run(["ip", "-o", "address", "show", name], capture_output=True, text=True).stdout


def until(name: str, cidr: str) -> None:
    for _ in range(150):
        if has(name, cidr):
            return
        time.sleep(0.1)
    raise SystemExit(f"{name} never had {cidr}")


def events(change: object) -> dict[str, int]:
    """Link and address events while it happens, and the three seconds after."""
    with subprocess.Popen(["ip", "monitor", "link", "address"], stdout=subprocess.PIPE, text=True) as monitor:
        time.sleep(0.5)
        change()
        time.sleep(3)
        monitor.terminate()
        lines = monitor.stdout.read().splitlines()
    return {name: sum(f" {name}" in line for line in lines) for name in (WAY, RAIL)}


def units_read_again() -> None:
    """As netplan's generator does at every `systemctl daemon-reload`, which our own units ask for."""
    networkd.hold(Module())
    for name, mtu, cidr in ((WAY, 1500, "10.9.9.9/24"), (RAIL, 9000, "192.168.100.12/24")):
        backup.put(Path("/") / place(name), spoken(name, mtu, cidr))


def rails_after_units() -> None:
    units_read_again()
    rails_alone(9200)


def rails_alone(mtu: int = 9000) -> None:
    before = {place(WAY): spoken(WAY, 1500, "10.9.9.9/24")}
    after = {**before, place(RAIL): spoken(RAIL, mtu, "192.168.100.12/24")}
    for path, file in generated.pending(before, after, [RAIL]).items():
        backup.put(path, file)
    networkd.put_back(Module())
    if why := generated.run(Module(), generated.steps([RAIL])):
        raise SystemExit(why)
    Module.read = time.time()


def every_file() -> None:
    """As `netplan generate` does, before networkd reads again."""
    backup.put(Path("/") / place(WAY), spoken(WAY, 1500, "10.9.9.9/24"))
    backup.put(Path("/") / place(RAIL), spoken(RAIL, 9000, "192.168.100.12/24"))
    sh("networkctl reload")


def main() -> None:
    # A read-only /sys tells networkd that there is no udev to wait for.
    sh("mount -t sysfs -o ro sysfs /sys; mount -t tmpfs tmpfs /run; mkdir -p /run/dbus /run/systemd/netif/links")
    sh("mkdir -p /run/systemd/netif/leases /run/systemd/netif/lldp; chown -R systemd-network: /run/systemd/netif")
    for name in (WAY, RAIL):
        sh(f"ip link add {name} mtu 9000 type veth peer name {name[:8]}x mtu 9000; ip link set {name[:8]}x up")
    backup.put(Path("/") / place(WAY), spoken(WAY, 1500, "10.9.9.9/24"))
    sh("dbus-daemon --system --fork --nopidfile")
    daemon = subprocess.Popen(["/lib/systemd/systemd-networkd"], stderr=subprocess.DEVNULL)
    until(WAY, "10.9.9.9/24")
    Module.read = time.time()
    time.sleep(3)  # what its start still had to say
    told = {"first": events(rails_alone)}
    until(RAIL, "192.168.100.12/24")
    told |= {"again": events(rails_alone), "after units": events(rails_after_units), "every file": events(every_file)}
    daemon.terminate()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
