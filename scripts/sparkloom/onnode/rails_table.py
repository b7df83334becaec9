"""Who may reach the rails: loads the planned nftables table on a node, and in each pod that is given a rail.

At boot, whenever the fabric role runs, and every minute: does nothing where the table stands as planned, and replaces
it in one step where it does not, in pods that have a rail too. As a CNI program, chained behind the one that moves a
rail into a pod, it loads the pods' table in the pod's network namespace before the first process of the pod; a pod that
cannot have it does not start. It gives the rail its MTU there too, and has it answer for its own address alone.
Nothing in a table asks who is connected already, so that no change of it ends a connection between planned addresses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from sparkloom.onnode import arp

TABLE = "sparkloom_rails"
HOST = Path("/etc/sparkloom/rails.nft")
POD = Path("/etc/sparkloom/rails-pod.nft")
NAMESPACES = Path("/run/netns")  # where containerd names those of pods
PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIST = ("nft", "-j", "list", "table", "inet", TABLE)
VERSIONS = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]
AS_PLANNED = "as planned"
CHANGED = "changed: "  # what the role and the doctor look for
CANNOT_LOAD = 100  # the first number that CNI leaves to its programs


class TableError(Exception):
    """What keeps a table from being loaded, and what to do about it."""


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PROGRAMS}", "LC_ALL": "C"}
    try:
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as error:
        if words == LIST:
            return subprocess.CompletedProcess(words, 127, "", "no nft")
        raise TableError(f"no {error.filename} on this node: the rails stay open without it; {cure(words)}") from None


def cure(words: tuple[str, ...]) -> str:
    return f"install the package {'nftables' if 'nft' in words else 'util-linux'} and run again"


def call(*words: str) -> str:
    done = ask(*words)
    if done.returncode:
        why = " ".join((done.stderr or done.stdout).split())
        raise TableError(f"{' '.join(words)}: {why}; it needs nft (package nftables) and nf_tables in the kernel")
    return done.stdout


def comparable(listing: str) -> list[Any]:
    """A listing less what differs between two loads of one file: numbers of rules, the order within a set."""

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: plain(item, name) for name, item in value.items() if name != "handle"}
        if not isinstance(value, list):
            return value
        items = [plain(item) for item in value]
        return sorted(items, key=str) if key in ("elem", "set") else items

    return [plain(entry) for entry in json.loads(listing)["nftables"] if "metainfo" not in entry]


def planned(file: Path) -> list[Any]:
    """As nft itself lists the file: loaded in a network namespace that nobody else sees, and gone with it."""
    script = f'nft -f "$1" && {" ".join(LIST)}'
    call("nft", "--version")
    return comparable(call("unshare", "--net", "sh", "-c", script, "sh", str(file)))


def stands(file: Path, inside: tuple[str, ...] = ()) -> bool:
    listed = ask(*inside, *LIST)
    if listed.returncode:
        return is_open(file)  # where everybody may come in nothing is missing, and no nft either
    return comparable(listed.stdout) == planned(file)


def of_pods(file: Path, namespaces: Path) -> Iterator[Path]:
    """Those in which one of the table's interfaces has an address of a rail: another's net1 is not ours."""
    text, opened = file.read_text(), is_open(file)
    names = {name for said in re.findall(r"iifname {(.*?)} drop", text) for name in re.findall(r'"(.*?)"', said)}
    subnets = [
        IPv4Network(net.strip()) for said in re.findall(r"ip daddr {(.*?)} drop", text) for net in said.split(",")
    ]
    for namespace in sorted(namespaces.iterdir()) if namespaces.is_dir() else ():
        inside = ("nsenter", f"--net={namespace}")
        if opened and not ask(*inside, *LIST).returncode:  # what an earlier plan left there
            yield namespace
        listed = ask(*inside, "ip", "-json", "-4", "address")  # nothing of one that ended meanwhile
        for link in json.loads(listed.stdout or "[]"):
            held = [IPv4Address(entry["local"]) for entry in link.get("addr_info", ())]
            if link["ifname"] in names and any(address in net for address in held for net in subnets):
                yield namespace
                break


def is_open(file: Path) -> bool:
    """Whether it keeps nobody out."""
    return "chain" not in file.read_text()


def load(file: Path, inside: tuple[str, ...] = ()) -> None:
    call(*inside, "nft", "-f", str(file))


def kept(file: Path, dry: bool, inside: tuple[str, ...] = ()) -> list[str]:
    """What was done, or would be."""
    where = f" in {inside[-1].partition('=')[2]}" if inside else ""
    if stands(file, inside):
        return []
    call("nft", "--version")  # a dry run says too that it is missing
    if dry:
        return [f"{CHANGED}table inet {TABLE}{where} is not as {file} says"]
    load(file, inside)
    return [f"{CHANGED}table inet {TABLE}{where} is as {file} says now"]


def every(host: Path, pod: Path, namespaces: Path, dry: bool) -> list[str]:
    """Of the node, and of each pod with a rail."""
    changes = kept(host, dry)
    for namespace in of_pods(pod, namespaces) if pod.exists() else ():
        changes += kept(pod, dry, ("nsenter", f"--net={namespace}"))
    return changes


def undone(dry: bool) -> list[str]:
    if ask(*LIST).returncode:
        return []
    if not dry:
        call("nft", "delete", "table", "inet", TABLE)
    return [f"{CHANGED}table inet {TABLE} is taken away"]


def fit(inside: tuple[str, ...], interface: str, mtu: int) -> None:
    """What a rank may not do itself unless it is privileged. What does not take is its supervisor's to name."""
    for name, value in arp.SETTINGS.items():  # a pod chose the interface's name: no word of a shell's
        ask(*inside, "sh", "-c", 'echo "$2" > "/proc/sys/net/ipv4/conf/$1"', "sh", f"{interface}/{name}", value)
    if mtu:  # after a boot a pod can be faster than the node that sets it for its function
        ask(*inside, "ip", "link", "set", "dev", interface, "mtu", str(mtu))


def attach(told: Mapping[str, str], config: Mapping[str, Any], file: Path = POD) -> dict[str, Any] | None:
    """What a CNI program is asked: in, a network's configuration with the result before ours; out, that result."""
    inside = ("nsenter", f"--net={told.get('CNI_NETNS', '')}")
    version = {"cniVersion": config.get("cniVersion", VERSIONS[0])}
    match told["CNI_COMMAND"]:
        case "VERSION":
            return {**version, "supportedVersions": VERSIONS}
        case "ADD":
            load(file, inside)
            fit(inside, told.get("CNI_IFNAME", ""), config.get("mtu", 0))
            return dict(config.get("prevResult") or version)
        case "CHECK" if not stands(file, inside):
            raise TableError(f"table inet {TABLE} of this pod is not as {file} says; delete the pod")
    return None  # the table goes with the pod's namespace


def as_cni(told: Mapping[str, str]) -> int:
    config = json.loads(sys.stdin.read() or "{}")
    try:
        result = attach(told, config)
    except (TableError, subprocess.SubprocessError, OSError) as error:
        result = {"cniVersion": config.get("cniVersion"), "code": CANNOT_LOAD, "msg": f"the rails' table: {error}"}
        print(json.dumps(result))
        return 1
    if result is not None:
        print(json.dumps(result))
    return 0


def main(words: list[str]) -> int:
    if "CNI_COMMAND" in os.environ:
        return as_cni(os.environ)
    parser = argparse.ArgumentParser("sparkloom-rails-table", description=__doc__)
    parser.add_argument("--file", type=Path, default=HOST, help="the node's planned table")
    parser.add_argument("--pods", type=Path, default=POD, help="the planned table of pods with a rail")
    parser.add_argument("--namespaces", type=Path, default=NAMESPACES, help="where the pods' network namespaces are")
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--undo", action="store_true", help="take the table away")
    args = parser.parse_args(words)
    try:
        changes = undone(args.check) if args.undo else every(args.file, args.pods, args.namespaces, args.check)
    except (TableError, subprocess.SubprocessError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(changes) or AS_PLANNED)
    return 0
