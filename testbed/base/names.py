"""Names, versions and places of the rack: the one copy of each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

# another name makes a second rack beside the first, for trying things
CLUSTER = os.environ.get("SPARKLOOM_RACK", "sparkloom")
NODES = {  # inventory name -> container name (kind fixes the latter)
    "spark1": f"{CLUSTER}-control-plane",
    "spark2": f"{CLUSTER}-worker",
    "spark3": f"{CLUSTER}-worker2",
    "spark4": f"{CLUSTER}-worker3",
}

KUBERNETES = "v1.35.4"
KIND = "v0.33.0"
ETCD_IMAGE = "registry.k8s.io/etcd:3.6.6-0"
COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:v1.13.1"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10.1"
MULTUS = "v4.2.4"
MULTUS_REPOSITORY = "ghcr.io/k8snetworkplumbingwg/multus-cni"
GPU_PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.18.2"
PYTHON_IMAGE = "docker.io/library/python:3.13.15-slim-trixie"  # the real one's name over the base of all pods
TOOLS_IMAGE = "localhost/sparkloom/tools:1"

REPO = Path(__file__).resolve().parents[2]
KIND_DIR = REPO / "testbed" / "make" / "kind"
NODE_FILES = KIND_DIR / "node"
STATE = REPO / ".build" / ("rack" if CLUSTER == "sparkloom" else f"rack-{CLUSTER}")
KUBECONFIG = STATE / "kubeconfig"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparkloom"

POD_SUBNET = "10.244.0.0/16"
SERVICE_SUBNET = "10.96.0.0/16"
# K3s keeps its CNI files here; carrying the same paths lets the product's roles run unchanged
CNI_BIN = "/var/lib/rancher/k3s/data/cni"
CNI_CONF = "/var/lib/rancher/k3s/agent/etc/cni/net.d"

FABRIC_NETNS = f"{CLUSTER}-fabric"
RAILS = ("a", "b")
JUMBO = 9000
DEVICES_FILE = NODE_FILES / "usr/local/lib/sparkloom-testbed/devices.json"
NODE_STATE = "/var/lib/sparkloom-testbed"


@dataclass(frozen=True)
class Device:
    """One network function of a node: a ConnectX-7 port (PF) or one of its virtual functions."""

    netdev: str
    pci: str
    hca: str
    rail: str  # "" = no cable in this port
    speed: int
    pf: str = ""  # netdev of the parent, for a VF

    @property
    def is_vf(self) -> bool:
        return bool(self.pf)


def devices() -> list[Device]:
    return [Device(**entry) for entry in json.loads(DEVICES_FILE.read_text())]


def mac(node_index: int, device_index: int) -> str:
    """Locally administered and the same after every re-creation (node_index counts from 1)."""
    return f"02:5b:1b:00:{node_index:02x}:{device_index:02x}"


def fabric_end(node_index: int, device_index: int) -> str:
    """A device's other end, in the fabric's namespace: s<node>d<device>, counted from 1 and 0."""
    return f"s{node_index}d{device_index}"


def rail_ends(node_index: int, rail: str) -> list[str]:
    return [fabric_end(node_index, i) for i, device in enumerate(devices()) if device.rail == rail]


def forget_machines(inventory: Path) -> None:
    """What runs recorded of them: new machines with the old names are on purpose here, and kind gives each container
    another machine-id at every start, which a Spark keeps."""
    (inventory / "known_hosts").unlink(missing_ok=True)
