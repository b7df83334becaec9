"""Find out which other nodes are behind each port.

Says the node's name on each port in a small Ethernet broadcast that needs no address, and listens to what the others
say, to switches that speak LLDP, and to what the kernel knows of neighbours (ARP). A port that is switched off is on
for that time, since its cable cannot be seen else. Nothing else is changed.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from sparkloom.onnode.host.read import number, run, text
from sparkloom.onnode.task import Data, Task

PROBE, LLDP = 0x88B5, 0x88CC  # the first is IEEE's for local experiments: switches forward it like any other
BROADCAST = b"\xff" * 6
LLDP_GROUP = b"\x01\x80\xc2\x00\x00\x0e"
MARK = b"sparkloom"
EVERY = 0.25
LINK_SECONDS = 10  # how long a port that was off may take to see its cable
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 263, 1, 0


def frame(mac: str, said: Data) -> bytes:
    source = bytes(int(part, 16) for part in mac.split(":"))
    return (BROADCAST + source + struct.pack("!H", PROBE) + MARK + json.dumps(said).encode()).ljust(60, b"\0")


def heard(data: bytes) -> Data | None:
    """What another node said; None for anybody else's frame."""
    payload = data[14:]
    if not payload.startswith(MARK):
        return None
    try:
        said = json.loads(payload[len(MARK) :].rstrip(b"\0"))
        return {key: str(said[key]) for key in ("site", "node", "port")}
    except (ValueError, KeyError, TypeError):
        return None


def lldp(data: bytes) -> Data:
    """Chassis, port and system name of an LLDP frame."""
    told, rest = {"chassis": "", "port": "", "system": ""}, data[14:]
    while len(rest) >= 2:
        (word,) = struct.unpack("!H", rest[:2])
        kind, size = word >> 9, word & 0x1FF
        value, rest = rest[2 : 2 + size], rest[2 + size :]
        if kind == 0:
            break
        if kind in (1, 2) and value:
            as_mac = (kind, value[0]) in ((1, 4), (2, 3))
            told["chassis" if kind == 1 else "port"] = value[1:].hex(":") if as_mac else readable(value[1:])
        elif kind == 5:
            told["system"] = readable(value)
    return told


def readable(value: bytes) -> str:
    return "".join(letter for letter in value.decode(errors="replace") if letter.isprintable()).strip()


def listener(interface: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    made.bind((interface, protocol))
    if protocol == LLDP:  # a group that the card filters unless it is asked for; forgotten with the socket
        number_of = socket.if_nametoindex(interface)
        asked = struct.pack("iHH8s", number_of, PACKET_MR_MULTICAST, 6, LLDP_GROUP)
        made.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, asked)
    made.setblocking(False)
    return made


def exchange(node: str, site: str, macs: dict[str, str], seconds: float) -> tuple[list[Data], list[Data]]:
    """Speak and listen on all ports at once: who was heard, and which switches."""
    sockets = {listener(name, protocol): (name, protocol) for name in macs for protocol in (PROBE, LLDP)}
    speakers = {name: made for made, (name, protocol) in sockets.items() if protocol == PROBE}
    nodes, switches = {}, {}
    until, following = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        if time.monotonic() >= following:
            following = time.monotonic() + EVERY
            for name, made in speakers.items():
                # no carrier, or its queue is full: said again in a moment
                with contextlib.suppress(OSError):
                    made.send(frame(macs[name], {"site": site, "node": node, "port": name}))
        for ready in select.select(list(sockets), [], [], EVERY / 2)[0]:
            name, protocol = sockets[ready]
            try:
                data = ready.recv(65535)
            except OSError:  # the link went down
                continue
            if protocol == LLDP:
                switches[name, data[6:12]] = {"interface": name, **lldp(data)}
            elif (said := heard(data)) and said["site"] == site:
                nodes[name, said["node"], said["port"]] = {"interface": name, **said}
    for made in sockets:
        made.close()
    return [nodes[key] for key in sorted(nodes)], [switches[key] for key in sorted(switches)]


def neighbours(ports: list[str]) -> list[Data]:
    """Whose MAC answers behind each port now; an older entry may be of a cable that was moved."""
    table = json.loads(run("ip", "-json", "neighbour", "show") or "[]")
    answering = [row for row in table if "lladdr" in row and "REACHABLE" in row.get("state", [])]
    return [{"interface": row["dev"], "mac": row["lladdr"]} for row in answering if row.get("dev") in ports]


def wake(net: Path, ports: list[str]) -> list[str]:
    """Switch on what is off, and wait for the cables to be seen."""
    off = [name for name in ports if not int(text(net / name / "flags", "0x1"), 16) & 1]
    for name in off:
        run("ip", "link", "set", "dev", name, "up")
    until = time.monotonic() + LINK_SECONDS
    while off and time.monotonic() < until and not all(text(net / name / "carrier") == "1" for name in off):
        time.sleep(0.2)
    return off


def links(net: Path, ports: list[str]) -> dict[str, Data]:
    return {
        name: {"carrier": text(net / name / "carrier") == "1", "speed": number(net / name / "speed")} for name in ports
    }


def main(
    task: Task,
    node: str,  # what this node is called; the others hear it
    site: str,  # whose node it is; another site's on the same switch is not heard
    ports: Sequence[str],  # interfaces to speak and listen on
    seconds: float = 35,  # how long; a switch speaks LLDP every 30 seconds
    sysfs_root: Path = Path("/sys"),  # where sysfs is mounted
) -> None:
    net = sysfs_root / "class/net"
    ports = [name for name in ports if (net / name).exists()]
    woken = [] if task.check_mode else wake(net, ports)
    try:
        macs = {name: text(net / name / "address") for name in ports}
        nodes, switches = exchange(node, site, macs, seconds)
        known = links(net, ports)
        table = neighbours(ports)
    except OSError as error:
        task.fail_json(msg=f"cannot listen on {', '.join(ports)}: {error}; expected root on the node")
    finally:
        for name in woken:
            run("ip", "link", "set", "dev", name, "down")
    task.exit_json(links=known, heard=nodes, lldp=switches, neighbours=table, woken=woken)
