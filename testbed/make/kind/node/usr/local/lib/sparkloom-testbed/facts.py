#!/usr/bin/python3
"""Stand-in for a GB10's kernel: shows in /sys what mlx5 and the RDMA stack would show for the node's rail devices.

Runs on a virtual node as a unit. Nothing is invented that the node can answer itself: link state, addresses, MTU and
byte counters are those of the real (veth) device, wherever it is, also inside a pod. The rest is devices.json. Faults
are read from faults.json, which `python -m testbed rack break` writes: {fault: {rail: …}}.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FAULTS = Path("/var/lib/sparkloom-testbed/faults.json")
RUN = Path("/run/sparkloom-testbed")
INFINIBAND, PCI, NET = RUN / "infiniband", RUN / "pci", RUN / "net"
KERNELS_NET = RUN / "kernels-net"
GIDS = 16
# Of mlx5's counters those that stay at 0 while nothing is wrong.
QUIET = (
    "counters/link_downed",
    "counters/symbol_error",
    "counters/port_rcv_errors",
    "counters/port_xmit_discards",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/roce_slow_restart",
)
EMPTY_GID = ":".join(["0000"] * 8)
TOTAL_VFS = 8
GB10_MEMORY_KIB = 127535156  # what MemTotal says on a Spark
KEPT_MEMORY_KIB = 60 << 20  # what an engine that ended badly has not given back
SLOW_MBITS = 13000
LANES, NARROW_LANES = 4, 2  # of each half of the card; of one that old system firmware wired
# Blocks of 4 KiB times a power of two, as a kernel counts them; a GB10's go up to 32 MiB.
ORDERS = 14
PAGE_KIB = 4

Device = dict[str, Any]
Interface = dict[str, Any]
DEVICES: list[Device] = json.loads((HERE / "devices.json").read_text())
written: dict[Path, str] = {}


def put(path: Path, text: str) -> None:
    """Write when it differs from what was written last, so that readers seldom meet a file being written."""
    if written.get(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        written[path] = text


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


# --- once per boot ------------------------------------------------------------------------------------------


def overlay(target: Path, upper: Path) -> None:
    work = RUN / "work" / upper.name
    work.mkdir(parents=True, exist_ok=True)
    mount("-t", "overlay", "-o", f"lowerdir={target},upperdir={upper},workdir={work}", "overlay", str(target))


def set_the_stage() -> None:
    for folder in (INFINIBAND, PCI, NET):
        folder.mkdir(parents=True, exist_ok=True)
    classes, buses = RUN / "class", RUN / "bus"
    for name in ("infiniband", "infiniband_verbs"):
        (classes / name).mkdir(parents=True, exist_ok=True)
    put(classes / "dmi/id/product_name", "NVIDIA_DGX_Spark")
    put(classes / "dmi/id/sys_vendor", "NVIDIA")
    (buses / "pci/devices").mkdir(parents=True, exist_ok=True)
    for index, device in enumerate(DEVICES):
        link = buses / "pci/devices" / device["pci"]
        link.unlink(missing_ok=True)
        link.symlink_to(PCI / device["pci"])
        put(classes / f"infiniband_verbs/uverbs{index}/ibdev", device["hca"])
        pci_function(device)
    # an overlay keeps a "not there" in mind: a rail that somebody looked for before it came stayed a dangling link.
    # /sys/class/net stays the kernel's own, by a second way in that the overlay does not cover (a mount of
    # /proc/self/fd/… would do too, but mount(8) resolves the name, and binds the overlay to itself)
    KERNELS_NET.mkdir(parents=True, exist_ok=True)
    mount("--bind", "/sys/class/net", str(KERNELS_NET))
    overlay(Path("/sys/class"), classes)
    mount("--bind", str(KERNELS_NET), "/sys/class/net")
    mount("--bind", str(INFINIBAND), "/sys/class/infiniband")
    overlay(Path("/sys/bus"), buses)
    # The page cache is that of the machine below, and of all its programs: no start of an engine here gives it back.
    put(RUN / "drop_caches", "0")
    if not os.path.ismount("/proc/sys/vm/drop_caches"):
        mount("--bind", str(RUN / "drop_caches"), "/proc/sys/vm/drop_caches")


def pci_function(device: Device) -> None:
    folder = PCI / device["pci"]
    put(folder / "vendor", "0x15b3")
    put(folder / "device", "0x101e" if "pf" in device else "0x1021")
    put(folder / "class", "0x020000")
    put(folder / "numa_node", "-1")
    put(folder / "uevent", f"DRIVER=mlx5_core\nPCI_SLOT_NAME={device['pci']}")
    relink(folder / "infiniband" / device["hca"], INFINIBAND / device["hca"])
    relink(folder / "driver", Path("/sys/bus/pci/drivers/mlx5_core"))
    if "pf" in device:
        parent = next(d for d in DEVICES if d["netdev"] == device["pf"])
        siblings = [d["netdev"] for d in DEVICES if d.get("pf") == device["pf"]]
        relink(folder / "physfn", PCI / parent["pci"])
        relink(PCI / parent["pci"] / f"virtfn{siblings.index(device['netdev'])}", folder)
    else:
        count = sum(d.get("pf") == device["netdev"] for d in DEVICES)
        put(folder / "sriov_totalvfs", str(TOTAL_VFS))
        put(folder / "sriov_numvfs", str(count))


def relink(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def character_devices() -> None:
    """Nodes in /dev/infiniband that privileged pods see; they are /dev/null in disguise."""
    folder = Path("/dev/infiniband")
    folder.mkdir(exist_ok=True)
    gone = faulty("no-rdma-device")
    wanted = {f"uverbs{i}": d["rail"] not in gone or not d["rail"] for i, d in enumerate(DEVICES)}
    for name, there in {**wanted, "rdma_cm": True}.items():
        path = folder / name
        if there and not path.exists():
            os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
            path.chmod(0o666)
        elif not there:
            path.unlink(missing_ok=True)


# --- every second -------------------------------------------------------------------------------------------


def faulty(fault: str) -> list[str]:
    try:
        return list(json.loads(FAULTS.read_text()).get(fault, []))
    except (FileNotFoundError, ValueError):
        return []


def ask_ip(namespace: str, *words: str) -> list[Interface]:
    prefix = ["nsenter", f"--net={namespace}"] if namespace else []
    done = subprocess.run([*prefix, "ip", "-j", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []


fruitless: dict[str, int] = {}
LOOKS = 15  # a pod gets its functions while it is made; one without them after so many looks never will


def locate() -> dict[str, tuple[Interface, bool]]:
    """Where each device is now: {name: (interface, whether it is in the node's own namespace)}."""
    found = {
        i["ifname"]: (i, True) for i in ask_ip("", "-s", "addr") if any(d["netdev"] == i["ifname"] for d in DEVICES)
    }
    missing = {d["netdev"] for d in DEVICES} - found.keys()
    present = [str(path) for path in sorted(Path("/run/netns").glob("cni-*"))] if missing else []
    for namespace in fruitless.keys() - present:
        del fruitless[namespace]
    for namespace in present:
        if fruitless.get(namespace, 0) >= LOOKS:
            continue
        # the host-device plugin notes the name that an interface had on the node as its alias (`link` shows it)
        aliases = {i["ifname"]: i.get("ifalias") for i in ask_ip(namespace, "link")}
        if missing.isdisjoint(aliases.values()):
            fruitless[namespace] = fruitless.get(namespace, 0) + 1
            continue
        for interface in ask_ip(namespace, "-s", "addr"):
            if (name := aliases.get(interface["ifname"])) in missing:
                found[str(name)] = (interface, False)
    return found


def lanes(device: Device) -> None:
    """What PCIe says of a port's link; its functions share it."""
    rail = device["rail"]
    narrow = bool(rail) and rail in faulty("narrow")
    folder = PCI / device["pci"]
    for which, width in (("current", NARROW_LANES if narrow else LANES), ("max", 16)):
        put(folder / f"{which}_link_speed", "32.0 GT/s PCIe")
        put(folder / f"{which}_link_width", str(width))


def show(device: Device, interface: Interface | None, on_node: bool) -> None:
    rail = device["rail"]
    if "pf" not in device:
        lanes(device)
    slow = bool(rail) and rail in faulty("slow")
    speed = SLOW_MBITS if slow else device["speed"]
    up = interface is not None and "LOWER_UP" in interface["flags"]
    attach_sysfs(device, speed if up else -1, on_node)
    folder = INFINIBAND / device["hca"]
    if interface is None or (rail and rail in faulty("no-rdma-device")):
        if folder.exists():
            forget(folder)
        return
    put(folder / "node_type", "1: CA")
    put(folder / "fw_ver", "28.45.4028")
    put(folder / "hca_type", "MT4129")
    relink(folder / "device", PCI / device["pci"])
    port = folder / "ports/1"
    put(port / "state", "4: ACTIVE" if up else "1: DOWN")
    put(port / "phys_state", "5: LinkUp" if up else "3: Disabled")
    put(port / "link_layer", "Ethernet")
    put(port / "rate", "13 Gb/sec (1X SDR)" if slow else "200 Gb/sec (4X HDR)" if up else "40 Gb/sec (4X QDR)")
    stats = interface.get("stats64", {})
    # the counters of a port count words of four bytes
    put(port / "counters/port_rcv_data", str(stats.get("rx", {}).get("bytes", 0) // 4))
    put(port / "counters/port_xmit_data", str(stats.get("tx", {}).get("bytes", 0) // 4))
    for name in QUIET:
        put(port / name, "0")
    gid_table(port, interface, bool(rail) and rail in faulty("no-gid"))


def attach_sysfs(device: Device, speed: int, on_node: bool) -> None:
    """speed and device beside the kernel's own files of the interface; the mount goes when the interface leaves."""
    name = device["netdev"]
    upper = NET / name
    put(upper / "speed", str(speed))
    relink(upper / "device", Path("/sys/bus/pci/devices") / device["pci"])
    link = PCI / device["pci"] / "net" / name
    target = Path("/sys/class/net") / name
    if not on_node:
        link.unlink(missing_ok=True)
        return
    real = target.resolve()
    if real.exists() and not (real / "device").exists():
        overlay_interface(real, upper)
    relink(link, target)


def overlay_interface(real: Path, upper: Path) -> None:
    # a lower directory only: the upper one of an overlay would cache the speed that we keep changing
    with subprocess.Popen(
        ["mount", "-t", "overlay", "-o", f"lowerdir={upper}:{real}", "overlay", str(real)],
        stderr=subprocess.PIPE,
        text=True,
    ) as attempt:
        _, error = attempt.communicate()
    if attempt.returncode:
        print(f"{real}: {error.strip()}", file=sys.stderr, flush=True)


def gid_table(port: Path, interface: Interface, without_ipv4: bool) -> None:
    """mlx5 lists every address twice (RoCE v1, then v2), the link-local one of the MAC first; free places are zero."""
    local = ["fe80::" + eui64(interface["address"])]
    wanted = [ipaddress.IPv6Address(a) for a in local]
    for address in interface["addr_info"]:
        if address["family"] == "inet" and not without_ipv4:
            wanted.append(ipaddress.IPv6Address(f"::ffff:{address['local']}"))
        elif address["family"] == "inet6" and address["scope"] == "global":
            wanted.append(ipaddress.IPv6Address(address["local"]))
    table = keep_places(port, [a.exploded for a in dict.fromkeys(wanted)])
    for index in range(GIDS):
        gid = table[index // 2]
        put(port / f"gids/{index}", gid or EMPTY_GID)
        for kind, text in (("types", "RoCE v2" if index % 2 else "IB/RoCE v1"), ("ndevs", interface["ifname"])):
            path = port / f"gid_attrs/{kind}/{index}"
            if gid:
                put(path, text)
            elif path.exists():
                path.unlink()
                written.pop(path, None)


places: dict[Path, list[str | None]] = {}


def keep_places(port: Path, gids: list[str]) -> list[str | None]:
    """An entry keeps its index as long as its address stays, as in the real table: indexes drift, code must scan."""
    table = places.setdefault(port, [None] * (GIDS // 2))
    for index, gid in enumerate(table):
        if gid not in gids:
            table[index] = None
    for gid in gids:
        if gid not in table and None in table:
            table[table.index(None)] = gid
    return table


def eui64(mac: str) -> str:
    b = [int(part, 16) for part in mac.split(":")]
    return f"{b[0] ^ 2:02x}{b[1]:02x}:{b[2]:02x}ff:fe{b[3]:02x}:{b[4]:02x}{b[5]:02x}"


def forget(folder: Path) -> None:
    shutil.rmtree(folder)
    for table in (written, places):
        for path in [p for p in table if folder in p.parents]:
            del table[path]


def show_unless_it_moves(device: Device, interface: Interface | None, on_node: bool) -> None:
    """A function that goes into a pod at this moment leaves a stale handle; the next second shows where it is."""
    try:
        show(device, interface, on_node)
    except OSError as error:
        if error.errno not in (errno.ESTALE, errno.ENODEV):
            raise


class Blocks:
    """The free memory of Meminfo as a kernel's blocks, bound over /proc/buddyinfo: whole ones, or crumbs."""

    def __init__(self) -> None:
        while os.path.ismount("/proc/buddyinfo"):
            subprocess.run(["umount", "/proc/buddyinfo"], check=True)
        self.shown = os.open(RUN / "buddyinfo", os.O_RDWR | os.O_CREAT, 0o444)
        os.fchmod(self.shown, 0o444)  # as the kernel has it: a node-exporter, which is nobody, reads it too
        self.update(0)
        mount("--bind", str(RUN / "buddyinfo"), "/proc/buddyinfo")

    def update(self, free_kib: int) -> None:
        order = 4 if faulty("crumbs") else ORDERS - 1
        counts = [max(0, free_kib) // (PAGE_KIB << order) if at == order else 0 for at in range(ORDERS)]
        os.pwrite(self.shown, ("Node 0, zone   Normal " + "".join(f"{n:>9}" for n in counts) + "\n").encode(), 0)


class Meminfo:
    """A GB10's memory size less this machine's true usage, bound over /proc/meminfo before the kubelet starts."""

    def __init__(self) -> None:
        # Started again, it would take what it showed for the machine's own, and count down from it every second.
        while os.path.ismount("/proc/meminfo"):
            subprocess.run(["umount", "/proc/meminfo"], check=True)
        self.real = os.open("/proc/meminfo", os.O_RDONLY)
        self.shown = os.open(RUN / "meminfo", os.O_RDWR | os.O_CREAT, 0o444)
        self.update()
        mount("--bind", str(RUN / "meminfo"), "/proc/meminfo")

    def update(self) -> int:
        """KiB that are shown as free."""
        lines = os.pread(self.real, 1 << 16, 0).decode().splitlines()
        rows = {name: int(rest.split()[0]) for name, rest in (line.split(":", 1) for line in lines)}
        free = GB10_MEMORY_KIB - (rows["MemTotal"] - rows["MemAvailable"])
        free -= KEPT_MEMORY_KIB if faulty("memory-kept") else 0
        rows |= {"MemTotal": GB10_MEMORY_KIB, "MemAvailable": free, "MemFree": free}
        # every line has a fixed width: one write in place, never a moment with half a file
        os.pwrite(self.shown, "".join(f"{name + ':':<17}{value:>12} kB\n" for name, value in rows.items()).encode(), 0)
        return free


def ready() -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)


def main() -> None:
    if not Path("/sys/class/infiniband").is_dir():
        set_the_stage()
    memory, blocks = Meminfo(), Blocks()
    first = True
    while True:
        blocks.update(memory.update())
        character_devices()
        found = locate()
        for device in DEVICES:
            show_unless_it_moves(device, *found.get(device["netdev"], (None, False)))
        if first:
            ready()
            first = False
        time.sleep(1)


if __name__ == "__main__":
    main()
