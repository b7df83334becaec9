"""Looking for Sparks: who says in the local network that it is there, and what a machine says of itself over SSH."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

from sparkloom.inputs import answers
from sparkloom.inputs.known_hosts import Machine
from sparkloom.site import identity
from sparkloom.site.checks.ports import CONNECTX7, MELLANOX

# What a GB10 is called until its owner renames it, by maker: NVIDIA spark-1f2e, Dell promaxgb10-41b1, and so on; all
# were seen in public logs (2026-11).
NAMED = re.compile(r"spark|gb10|^(gx10|gn100|zgx|aitopatom|edgexpert|thinkstationpgx)-[0-9a-f]{4}\b", re.I)
LISTENS = 30  # seconds
SERVICES = ("_ssh._tcp", "_workstation._tcp")  # what machines announce by mDNS
WAIT = 8  # seconds for a login
SHOWN = "sparkloom-host-key"
# A key that the person's own record has otherwise ends the login; a new one is recorded nowhere yet. ssh tells the key
# that it was shown to a command (8.5 and newer), known or not.
LOGIN = (
    "-o", "BatchMode=yes", "-o", f"ConnectTimeout={WAIT}", "-o", "ControlPath=none", "-o", "UpdateHostKeys=no",
    "-o", "StrictHostKeyChecking=accept-new",
    "-o", "UserKnownHostsFile=/dev/null ~/.ssh/known_hosts ~/.ssh/known_hosts2",
    "-o", "IgnoreUnknown=KnownHostsCommand", "-o", f'KnownHostsCommand=/bin/sh -c "echo {SHOWN} %t %K >&2"',
)  # fmt: skip
# Read only, for any shell; one `key value` a line.
ASK = r"""
echo "name $(hostname -s)"
echo "machine-id $(cat /etc/machine-id)"
board=/sys/class/dmi/id/board_serial
echo "serial $(cat $board 2>/dev/null || sudo -n cat $board 2>/dev/null)"
echo "machine $(uname -m)"
echo "gpu $(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n1)"
set -- $(ip -4 route show default | head -n1); while [ $# -gt 1 ]; do [ "$1" = dev ] && echo "interface $2"; shift; done
port=$(ip -4 route show default | sed -n '1s/.* dev \([^ ]*\).*/\1/p')
echo "address $(ip -4 -o addr show dev "$port" scope global 2>/dev/null | sed -n '1s/.* inet \([0-9.]*\).*/\1/p')"
[ -e /etc/nvidia/cx7-hotplug-enabled ] && echo "hotplug armed"
for port in /sys/class/net/*; do
  [ -e "$port/device/vendor" ] || continue
  carrier=$(cat "$port/carrier" 2>/dev/null || echo 0)
  echo "port ${port##*/} $(cat "$port/device/vendor") $(cat "$port/device/device") $carrier"
done
"""


class Spark(NamedTuple):
    """One machine, as it was reached and as it told; `trouble` says why it cannot be one of ours."""

    reached: str
    name: str = ""
    interface: str = ""
    address: str = ""
    linked: tuple[str, ...] = ()  # ConnectX-7 ports with a carrier
    machine: Machine = Machine()
    trouble: str = ""
    hotplug: bool = False  # whether it takes its ConnectX-7 off the bus while no cable is in


def announced() -> list[str]:
    """Addresses of machines that announce themselves as a Spark by name; empty where nothing here can listen."""
    browser = shutil.which("avahi-browse")
    if not browser:
        return []
    outward = _outward()
    found: dict[str, tuple[int, str]] = {}
    for line in chain.from_iterable(_heard(browser, service) for service in SERVICES):
        fields = line.split(";")  # =;interface;IPv4;name;type;domain;host;address;port;text
        if len(fields) > 7 and fields[0] == "=" and fields[2] == "IPv4" and NAMED.search(fields[6]):
            port, host, address = fields[1], fields[6], fields[7]
            if port == "lo" or answers.fault(answers.ADDRESS, address):
                continue  # this machine hears itself; anybody may announce anything
            # once, also where it is heard by cable and by radio; on a Spark also by its rails and by Docker's bridge,
            # whose addresses are not there for long
            place = outward.index(port) if port in outward else len(outward)
            if host not in found or place < found[host][0]:
                found[host] = (place, address)
    return sorted(address for _, address in found.values())


def _outward() -> list[str]:
    """Interfaces with a default route, the preferred one first: by them machines are managed."""
    try:
        done = subprocess.run(["ip", "-4", "route", "show", "default"], capture_output=True, text=True, timeout=WAIT)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r"\bdev (\S+)", done.stdout)


def _heard(browser: str, service: str) -> list[str]:
    """What was said within the time: a machine that went without a word is waited for by the browser."""
    try:
        done = subprocess.run([browser, "-rpt", service], capture_output=True, timeout=LISTENS)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace").splitlines()
    return done.stdout.decode(errors="replace").splitlines()


def look(addresses: Iterable[str], user: str) -> list[Spark]:
    """Every machine, all at once, in the order given."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda address: _look(address, user), addresses))


def _look(address: str, user: str) -> Spark:
    command = ["ssh", *LOGIN, f"{user}@{address}", "sh", "-s"]
    try:
        done = subprocess.run(command, input=ASK, capture_output=True, text=True, errors="replace", timeout=3 * WAIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Spark(address, trouble=f"no answer to ssh {user}@{address}: {error}")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(SHOWN)]
        cure = f"`ssh {user}@{address}` must work without a password (ssh-copy-id {user}@{address})"
        return Spark(address, trouble=f"{said[-1] if said else 'it said nothing'}; {cure}")
    found = _parsed(address, done.stdout)
    keys = [key for key in re.findall(rf"^{SHOWN} (.+)", done.stderr, re.M) if not answers.fault(answers.HOST_KEY, key)]
    return found._replace(machine=found.machine._replace(key=keys[-1] if keys else ""))


def _parsed(address: str, text: str) -> Spark:
    lines = [line.split(maxsplit=1) for line in text.splitlines() if " " in line.strip()]
    said = {key: value.strip() for key, value in (line for line in lines if len(line) == 2) if key != "port"}
    ports = [line[1].split() for line in lines if line[0] == "port" and len(line) == 2]
    linked = tuple(
        port[0] for port in ports if len(port) == 4 and tuple(port[1:3]) == (MELLANOX, CONNECTX7) and port[3] == "1"
    )
    found = Spark(address, said.get("name", ""), said.get("interface", ""), said.get("address", ""), linked)
    found = found._replace(hotplug="hotplug" in said)
    if said.get("machine") != "aarch64" or "GB10" not in said.get("gpu", ""):
        seen = f"{said.get('machine', 'unknown')}, GPU {said.get('gpu') or 'none'}"
        trouble = f"{found.name or address} is no DGX Spark: found {seen}, expected aarch64, NVIDIA GB10"
        return found._replace(trouble=trouble)
    if not found.address:
        trouble = f"{found.name} has no IPv4 address on its default route's port; the cluster needs one"
        return found._replace(trouble=trouble)
    own = said.get("machine-id", "")
    told = (
        (answers.NAME, found.name),
        (answers.ADDRESS, found.address),
        (answers.INTERFACE, found.interface),
        (answers.MACHINE_ID, own),
        *((answers.INTERFACE, port) for port in linked),
    )
    if faults := [fault for kind, word in told if (fault := answers.fault(kind, word))]:
        return found._replace(trouble="; ".join(faults))
    return found._replace(machine=identity.told(found.name, own, said.get("serial", "")))
