"""Who is let in where nobody should be: asked from a pod that has no rail, from the LAN's address, and as a peer.

What is dropped gets no answer. A port that nobody listens at refuses: that answer was let in too.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from sparkloom.onnode.host.read import run
from sparkloom.onnode.task import Data

NAMESPACES = Path("/run/netns")  # where containerd names those of pods
SECONDS = 1.5  # for an answer; a kernel asks again after one
AT_ONCE = 500  # doors: `select` takes 1,024 files, and a process may have no more open than that
# In the network namespace of whoever asks, with nothing but Python around: all at once.
ASKS = """
import errno, json, select, socket, sys, time
source, seconds, doors = json.loads(sys.argv[1])
asked, said = {}, {}
def hear(number, code):
    if code in (0, errno.ECONNREFUSED):
        said[number] = "refuses" if code else "answers"
for number, (address, port) in enumerate(doors):
    plug = socket.socket()
    plug.setblocking(False)
    if source:
        plug.bind((source, 0))
    code = plug.connect_ex((address, port))
    if code == errno.EINPROGRESS:
        asked[plug] = number
    else:
        hear(number, code)
until = time.monotonic() + seconds
while asked and time.monotonic() < until:
    for plug in select.select([], list(asked), [], max(0, until - time.monotonic()))[1]:
        hear(asked.pop(plug), plug.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
print(json.dumps(said))
"""


def answered(doors: list[Data], management: str, subnets: list[str]) -> Data:
    """`by`: from where it could be asked; `doors`: those that gave an answer, and which.

    An address that no rail of this node leads to is not asked: the packets of a rail that is down take the default
    route, and some router on that way answers for everybody.
    """
    ways_there = rails(subnets)
    leads = {address: way_to(address) in ways_there for address in {door["address"] for door in doors}}
    doors = [door for door in doors if leads[door["address"]]]
    inside = a_pod(NAMESPACES, subnets)
    outside = [str(address) for name, address in addresses() if name == management]
    ways: dict[str, tuple[list[str], str]] = {"peer": ([], "")}
    if inside:
        ways["pod"] = (["nsenter", f"--net={inside}"], "")
    if outside:
        ways["lan"] = ([], outside[0])
    with ThreadPoolExecutor(len(ways)) as pool:
        heard = pool.map(lambda by: _heard(doors, by, *ways[by]), ways)
        return {"by": sorted(ways), "doors": [door for each in heard for door in each]}


def _heard(doors: list[Data], by: str, words: list[str], source: str) -> list[Data]:
    mine = [door for door in doors if door["by"] == by]
    heard = []
    for start in range(0, len(mine), AT_ONCE):
        some = mine[start : start + AT_ONCE]
        told = json.dumps([source, SECONDS, [[door["address"], door["port"]] for door in some]])
        said = json.loads(run(*words, sys.executable, "-I", "-S", "-c", ASKS, told, timeout=60) or "{}")
        heard += [{**door, "how": said[str(number)]} for number, door in enumerate(some) if str(number) in said]
    return heard


def a_pod(namespaces: Path, subnets: list[str]) -> str:
    """The namespace of a pod of the cluster's network that has no rail; empty where this node has none."""
    rails = [IPv4Network(subnet) for subnet in subnets]
    for namespace in sorted(namespaces.iterdir()) if namespaces.is_dir() else ():
        own = [address for name, address in addresses("nsenter", f"--net={namespace}") if name != "lo"]
        if own and not any(address in rail for address in own for rail in rails):
            return str(namespace)
    return ""


def rails(subnets: list[str]) -> set[str]:
    """Interfaces of this node with an address of a rail; its own addresses are behind the loopback."""
    networks = [IPv4Network(subnet) for subnet in subnets]
    return {"lo", *(name for name, address in addresses() if any(address in network for network in networks))}


def way_to(address: str) -> str:
    ways = json.loads(run("ip", "-json", "route", "get", address) or "[]")
    return str(ways[0].get("dev", "")) if ways else ""


def addresses(*inside: str) -> list[tuple[str, IPv4Address]]:
    """Interfaces and their IPv4 addresses; `inside`: the words that lead into another network namespace."""
    listed = json.loads(run(*inside, "ip", "-json", "-4", "address", "show") or "[]")
    held = ((link.get("ifname", ""), info) for link in listed for info in link.get("addr_info", ()))
    return [(name, IPv4Address(info["local"])) for name, info in held if info.get("family") == "inet"]
