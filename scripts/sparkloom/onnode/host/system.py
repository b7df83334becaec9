"""What Kubernetes asks of any machine: system, control groups, free ports, firewall, and who answers in the network."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkloom.onnode.host.read import run, running, sockets, text
from sparkloom.onnode.task import Data

ETC, PROC, CGROUPS = Path("/etc"), Path("/proc"), Path("/sys/fs/cgroup")
LISTENS = "0A"  # the state of a socket in /proc/net/tcp
MARK = "sparkloom"  # stands in every unit that we wrote
PATIENCE = 5  # seconds for one answer; a machine that compiles kernels on all cores is slow, not away
SSH = 22


def system() -> Data:
    told = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text(ETC / "os-release"), re.M))
    return {
        "name": os.uname().nodename,
        "machine": os.uname().machine,
        "os": told.get("PRETTY_NAME", ""),
        "families": [*told.get("ID", "").split(), *told.get("ID_LIKE", "").split()],
        "systemd": Path("/run/systemd/system").is_dir(),
    }


def cgroups() -> Data:
    """Which version, and the controllers that the kernel offers."""
    if (CGROUPS / "cgroup.controllers").exists():
        return {"version": 2, "controllers": text(CGROUPS / "cgroup.controllers").split()}
    rows = [line.split() for line in text(PROC / "cgroups").splitlines() if not line.startswith("#")]
    return {"version": 1, "controllers": [row[0] for row in rows if row[3] == "1"]}


def firewall() -> Data:
    """What ufw says of its rules where it is switched on; whether firewalld runs, and whether there is an nft."""
    on = re.search(r"^ENABLED=yes", text(ETC / "ufw/ufw.conf"), re.M)
    return {
        "ufw": run("env", "LC_ALL=C", "ufw", "status", "verbose", timeout=60) if on else "",
        "firewalld": running("firewalld.service"),
        "nft": shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None,
    }


def listening(wanted: Iterable[int]) -> list[Data]:
    """Who listens on these TCP ports: process and unit, where they can be told, and whether the unit is ours."""
    tables = [text(PROC / "net" / name).splitlines()[1:] for name in ("tcp", "tcp6")]
    known = [line.split() for lines in tables for line in lines]
    open_ = {row[9]: int(row[1].rpartition(":")[2], 16) for row in known if row[3] == LISTENS}
    held = {inode: port for inode, port in open_.items() if port in set(wanted)}
    owners = holders(set(held)) if held else {}
    nobody = {"pid": 0, "name": "", "unit": "", "ours": False}
    rows = {port: owners.get(inode, nobody) for inode, port in held.items()}
    return [{"port": port, **rows[port]} for port in sorted(rows)]


def holders(inodes: set[str]) -> dict[str, Data]:
    """The process behind each socket."""
    found = sockets(PROC.glob("[0-9]*/fd/*"))
    return {inode: owner(int(entry.parts[-3])) for entry, inode in found if inode in inodes}


def owner(pid: int) -> Data:
    folder = PROC / str(pid)
    unit = re.search(r"([^/]+\.service)(?:/|$)", text(folder / "cgroup"), re.M)
    name = unit[1] if unit else ""
    ours = bool(name) and MARK in text(ETC / "systemd/system" / name)
    return {"pid": pid, "name": text(folder / "comm"), "unit": name, "ours": ours}


def reached(targets: list[Data]) -> list[Data]:
    """Which machines answer at their addresses."""
    if not targets:
        return []
    with ThreadPoolExecutor(max_workers=min(16, len(targets))) as pool:
        answers = pool.map(lambda target: answers_at(target["address"]), targets)
        return [{**target, "answers": answer} for target, answer in zip(targets, answers, strict=True)]


def answers_at(address: str) -> bool:
    """By a ping; where pings are dropped, a connection that is made or refused shows that packets go both ways."""
    for _ in range(2):
        if run("ping", "-n", "-c", "1", "-W", str(PATIENCE), address, timeout=4 * PATIENCE):
            return True
    try:
        socket.create_connection((address, SSH), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True
