"""What a group of ranks needs, taken away for a while: a context of its own for each fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.engine import faults as engine_faults
from testbed.kills import kubectl
from testbed.rack import cluster, faults, names

NETWORK = "network-attachment-definitions.k8s.cni.cncf.io/rail-b-vf0"
STORE = engine_faults.FOLDER


@contextmanager
def broken(node: str, fault: str, rail: str) -> Iterator[None]:
    faults.break_(node, fault, [rail])
    try:
        yield
    finally:
        faults.mend(node, fault, [rail])


@contextmanager
def without_addresses() -> Iterator[None]:
    """The second rail's network gives no address to whoever is attached now."""

    def put(text: str) -> None:
        kubectl("patch", NETWORK, "--type=merge", "-p", json.dumps({"spec": {"config": text}}))

    before = json.loads(kubectl("get", NETWORK, "-o", "json"))["spec"]["config"]
    changed = json.loads(before)
    for plugin in changed["plugins"]:
        plugin["ipam"] = {}
    put(json.dumps(changed))
    try:
        yield
    finally:
        put(before)


@contextmanager
def wrong_weights(node: str, model: str) -> Iterator[None]:
    """One byte of one shard is another one; what was there comes back with its time of change."""
    script = (
        f"cd {STORE}/by-name/{model.replace('/', '--')} && file=$(readlink -f model-00002-of-00004.safetensors) && "
    )
    change = "cp -p $file $file.away && printf x | dd of=$file bs=1 seek=4096 conv=notrunc status=none"
    cluster.node_sh(names.NODES[node], script + change)
    try:
        yield
    finally:
        cluster.node_sh(names.NODES[node], script + "mv $file.away $file")


@contextmanager
def sockets_only() -> Iterator[None]:
    engine_faults.add("all", "socket", [])
    try:
        yield
    finally:
        engine_faults.mend("all")
