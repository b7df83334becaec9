"""A site's choices as the role hands them over, and machines to bring K3s up on."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars
from sparkloom.render.k3s.options import Options, options
from tests.places import REPO

RAILS = [{"name": "a", "pf": "enp1s0f0np0", "pci": "0000:01:00.0", "subnet": "192.168.100.0/24"}]


def chosen(**changes: Any) -> Options:
    versions = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/versions.yml").read_text())
    defaults = yaml.safe_load((REPO / "roles/k3s/defaults/main.yml").read_text())
    return options({**defaults, **versions, **changes})


def site(servers: list[str] | None = None, nodes: int = 4, **kubernetes: Any) -> Cluster:
    """Sparks spark1.. and servers by name; box1.. stand beside the Sparks."""
    sparks = {f"spark{n}": {"name": f"spark{n}", "management_address": f"10.1.0.{n}"} for n in range(1, nodes + 1)}
    boxes = {f"box{n}": {"name": f"box{n}", "management_address": f"10.1.1.{n}"} for n in range(1, 4)}
    return from_vars(
        {
            "cluster": {"name": "gb10", "kubernetes": kubernetes},
            "fabric": {"rails": RAILS},
            "nodes": list(sparks.values()),
            "servers": [(sparks | boxes)[name] for name in servers or []],
        }
    )


@pytest.fixture
def state() -> dict[str, Any]:
    """A machine with nothing on it."""
    unit = {"exists": False, "ours": False, "active": False, "enabled": False}
    return {
        "machine": "aarch64",
        "version": "",
        "programs": {},
        "units": {"k3s": dict(unit), "k3s-agent": dict(unit)},
        "stamp": {},
        "nvidia": "",
        "nvidia_known": False,
        "kubelet": False,
        "default_route": True,
        "dropins": [],
        "waits": "",
        "addresses": {},
    }
