"""Interfaces of this network namespace, asked from the kernel: addresses by netlink, sizes by ioctl."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCGIFMTU, SIOCSIFMTU, SIOCGIFFLAGS = 0x8921, 0x8922, 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
RTM_NEWADDR, RTM_GETADDR, NLMSG_DONE = 20, 22, 3
NLM_F_REQUEST_DUMP = 0x301
IFA_ADDRESS, IFA_LOCAL = 1, 2


def addresses() -> dict[str, list[tuple[str, int]]]:
    """IPv4 addresses with their prefix lengths, by interface."""
    here: dict[str, list[tuple[str, int]]] = {name: [] for _, name in socket.if_nameindex()}
    names = dict(socket.if_nameindex())
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.settimeout(5)
        link.send(struct.pack("=LHHLLBBBBL", 24, RTM_GETADDR, NLM_F_REQUEST_DUMP, 1, 0, socket.AF_INET, 0, 0, 0, 0))
        while _take(link.recv(1 << 18), names, here):
            pass
    return here


def _take(data: bytes, names: dict[int, str], here: dict[str, list[tuple[str, int]]]) -> bool:
    """Reads one answer; False when it was the last."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=LH", data, at)
        if kind == NLMSG_DONE or length < 16:
            return False
        if kind == RTM_NEWADDR:
            prefix, index = struct.unpack_from("=BxxL", data, at + 17)
            given = _attributes(data[at + 24 : at + length])
            address = given.get(IFA_LOCAL) or given.get(IFA_ADDRESS)
            if address:
                here.setdefault(names.get(index, str(index)), []).append((socket.inet_ntoa(address), prefix))
        at += (length + 3) & ~3
    return True


def _attributes(data: bytes) -> dict[int, bytes]:
    values, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        values[kind] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return values


def mtu(interface: str) -> int:
    return int(struct.unpack_from("=i", _ask(interface, SIOCGIFMTU), 16)[0])


def set_mtu(interface: str, size: int) -> str:
    """Empty, or why the kernel refused."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            fcntl.ioctl(probe.fileno(), SIOCSIFMTU, struct.pack("=16si20x", interface.encode()[:15], size))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def up(interface: str) -> tuple[bool, bool]:
    """Set up, and with a carrier."""
    flags = struct.unpack_from("=H", _ask(interface, SIOCGIFFLAGS), 16)[0]
    return bool(flags & IFF_UP), bool(flags & IFF_RUNNING)


def _ask(interface: str, what: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return fcntl.ioctl(probe.fileno(), what, struct.pack("=16s24x", interface.encode()[:15]))
