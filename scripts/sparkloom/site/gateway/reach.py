"""How clients on this machine reach a site's endpoint: its address, the authority that vouches for it, the key's file.

What playbooks/gateway.yml makes with its defaults; who has other names or files gives them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster


class Reach(NamedTuple):
    url: str
    ca: Path | None
    key_file: Path | None


def of(cluster: Cluster) -> Reach:
    """Every Spark answers; the first one is as good as any."""
    first = cluster.nodes[0]
    if not first.management_address:
        message = f"{first.name} has no management_address, so the endpoint is not known; --url names it"
        raise InputError.single("hosts.yml", message, rule="no-endpoint")
    kept = Path("~/.config/sparkloom").expanduser() / cluster.name
    ca, key = kept / "ca.pem", kept / "api-key"
    return Reach(f"https://{first.management_address}", ca if ca.exists() else None, key if key.exists() else None)
