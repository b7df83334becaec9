"""A person's site on this machine's loopback: four Sparks at 127.0.0.11 to .14, a cluster that nobody answers for."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path

from tests.places import REPO

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: home
contexts: [{name: home, context: {cluster: home, user: owner}}]
clusters: [{name: home, cluster: {server: "https://127.0.0.1:%d", insecure-skip-tls-verify: true}}]
users: [{name: owner, user: {token: none}}]
"""


def nobody_listens() -> int:
    """A port of this machine that was free a moment ago."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def off(home: Path, name: str = "evening") -> Path:
    """A site that does not answer: no SSH, no cluster, and no address of anybody else's."""
    port = silent(home, name)
    site = home / "inventories" / name
    shutil.copytree(REPO / "inventories" / "gb10", site)
    hosts = site / "hosts.yml"
    hosts.write_text(
        re.sub(r"ansible_host: spark(\d)\.local", rf"ansible_host: 127.0.0.1\1, ansible_port: {port}", _here(hosts))
    )
    cluster = site / "group_vars/all/cluster.yml"
    own = _here(cluster).replace("example: true", "example: false")
    own = own.replace("name: gb10", f"name: {name}").replace("sparkloom-gb10", f"sparkloom-{name}")
    cluster.write_text(own)
    return site


def silent(home: Path, name: str) -> int:
    """A kubeconfig whose server does not answer; its port."""
    port = nobody_listens()
    (home / ".kube").mkdir(exist_ok=True)
    (home / ".kube" / f"sparkloom-{name}").write_text(KUBECONFIG % port)
    return port


def _here(file: Path) -> str:
    """The example's text with management addresses of this machine: nothing may be asked at a stranger's."""
    return file.read_text().replace("192.168.1.", "127.0.0.")
