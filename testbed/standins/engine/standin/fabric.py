"""What NCCL would find: RDMA devices and their GIDs, chosen by the same variables, told in the same words."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

CLASS = Path(os.environ.get("STANDIN_RDMA", "/sys/class/infiniband"))
VERSION = "2.28.9+cuda13.0"


class FabricError(Exception):
    """Ends the rank as ncclSystemError would."""


@dataclass(frozen=True)
class Device:
    """One usable RDMA device: its name, the interface below it and that interface's IPv4 address."""

    name: str
    interface: str
    address: str
    gid: int = 3  # index of its IPv4 RoCE v2 entry


def say(rank: int, text: str, level: str = "INFO") -> None:
    print(f"{socket.gethostname()}:{os.getpid()}:{os.getpid()} [0] NCCL {level} {text}", flush=True)


def interface_address(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            packed = fcntl.ioctl(probe.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(packed[20:24])


def matches(name: str, wanted: str) -> bool:
    """NCCL's own matching: `=a,b` exact, `a,b` prefixes, `^a` all but."""
    if not wanted:
        return True
    exact, negate = False, False
    while wanted[:1] in ("=", "^"):
        exact, negate, wanted = exact or wanted[0] == "=", negate or wanted[0] == "^", wanted[1:]
    words = [word.split(":")[0] for word in wanted.split(",") if word]
    hit = any(name == word if exact else name.startswith(word) for word in words)
    return hit != negate


def devices() -> list[Device]:
    """Active devices that the variables allow and whose IPv4 RoCE v2 GID belongs to an interface in this pod."""
    wanted = os.environ.get("NCCL_IB_HCA", "")
    usable = []
    for folder in sorted(CLASS.iterdir()) if CLASS.is_dir() else []:
        port = folder / "ports/1"
        if matches(folder.name, wanted) and "ACTIVE" in _read(port / "state"):
            usable += _usable(folder.name, port)
    order = {name: place for place, name in enumerate(word.split(":")[0] for word in wanted.lstrip("=^").split(","))}
    return sorted(usable, key=lambda device: (order.get(device.name, 99), device.name))


def _usable(name: str, port: Path) -> list[Device]:
    for entry in sorted((port / "gid_attrs/ndevs").glob("*"), key=lambda path: int(path.name)):
        gid, kind = _read(port / "gids" / entry.name), _read(port / "gid_attrs/types" / entry.name)
        if kind == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:"):
            address = socket.inet_ntoa(bytes.fromhex(gid.replace(":", "")[24:]))
            interface = _local_interface(address)
            if interface:
                return [Device(name, interface, address, int(entry.name))]
    return []


def _local_interface(address: str) -> str | None:
    return next((name for _, name in socket.if_nameindex() if interface_address(name) == address), None)


def bootstrap() -> tuple[str, str]:
    """Interface and address of NCCL_SOCKET_IFNAME, or of the first interface that is not loopback."""
    wanted = os.environ.get("NCCL_SOCKET_IFNAME", "")
    for _, name in socket.if_nameindex():
        address = interface_address(name)
        if address and (matches(name, wanted) if wanted else name != "lo"):
            return name, address
    raise FabricError(f"Bootstrap : no socket interface found (NCCL_SOCKET_IFNAME={wanted or 'unset'})")


def open_transport(rank: int, blind: bool = False) -> tuple[str, list[Device]]:
    """`IB` or `Socket` with the devices used; FabricError where NCCL would end. `blind` sees no device."""
    name, address = bootstrap()
    say(rank, f"Bootstrap: Using {name}:{address}<0>")
    say(rank, f"cudaDriverVersion 13000\nNCCL version {VERSION}")
    for variable in sorted(key for key in os.environ if key.startswith("NCCL_")):
        say(rank, f"{variable} set by environment to {os.environ[variable]}.")
    net = os.environ.get("NCCL_NET", "")
    there = [] if blind or net == "Socket" or os.environ.get("NCCL_IB_DISABLE") == "1" else devices()
    if there:
        listed = " ".join(f"[{place}]{device.name}:1/RoCE" for place, device in enumerate(there))
        say(rank, f"NET/IB : Using {listed} [RO]; OOB {name}:{address}<0>")
        say(rank, "Using network IB")
        return "IB", there
    if net != "Socket":
        say(rank, "NET/IB : No device found.")
    if net == "IB":
        say(rank, "Failed to initialize any NET plugin", "WARN")
        raise FabricError(
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, invalid usage "
            "(run with NCCL_DEBUG=WARN for details): network IB not found"
        )
    say(rank, f"NET/Socket : Using [0]{name}:{address}<0>")
    say(rank, "Using network Socket")
    return "Socket", [Device("socket", name, address)]


def gid_words(device: Device) -> str:
    """The IPv4 GID as NCCL prints it: two 64-bit words, read the way the machine stores them."""
    mapped = b"\0" * 10 + b"\xff\xff" + socket.inet_aton(device.address)
    prefix, interface = struct.unpack("<QQ", mapped)
    return f"GID {device.gid} ({prefix:X}/{interface:X})"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
