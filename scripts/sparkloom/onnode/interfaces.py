"""Interfaces of this network namespace, asked from the kernel by ioctl: addresses, sizes, flags."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCGIFCONF, SIOCGIFNETMASK = 0x8912, 0x891B
SIOCGIFMTU, SIOCSIFMTU, SIOCGIFFLAGS = 0x8921, 0x8922, 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
IFREQ = 40  # bytes of one entry: its name, then at 20 the address
MOST = 1 << 16  # bytes of a list
# How a rail's function is told to answer for its own address alone, on the node and in a pod. Both halves of a port are
# on one wire, and without it each answers for the other's address too: RDMA then goes to a function that has not that
# GID, whichever answer came first.
OWN_ADDRESS_ONLY = {"arp_ignore": "1", "arp_announce": "2"}


def addresses() -> dict[str, list[tuple[str, int]]]:
    """IPv4 addresses with their prefix lengths, by interface."""
    here: dict[str, list[tuple[str, int]]] = {name: [] for _, name in socket.if_nameindex()}
    listed = array.array("B", bytes(MOST))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = struct.pack("iL", MOST, listed.buffer_info()[0])
        size = struct.unpack("iL", fcntl.ioctl(probe, SIOCGIFCONF, asked))[0]
        for at in range(0, size, IFREQ):
            entry = listed[at : at + IFREQ].tobytes()
            name = entry[:16].partition(b"\0")[0].decode().partition(":")[0]  # net1:1 is a second address of net1
            mask = int.from_bytes(fcntl.ioctl(probe, SIOCGIFNETMASK, entry)[20:24], "big")
            here.setdefault(name, []).append((socket.inet_ntoa(entry[20:24]), bin(mask).count("1")))
    return here


def holding(address: str) -> str:
    """The name of the one that has this IPv4 address; nothing for loopback and where none has it."""
    have = (name for name, held in addresses().items() if address in (one for one, _ in held))
    return next((name for name in have if name != "lo"), "")


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
