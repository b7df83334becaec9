"""What a group of ranks needs, taken away for a while: a context of its own for each fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.base import names
from testbed.base.shell import run
from testbed.beds.rack import cluster, faults
from testbed.trials import engine_faults

STORE = engine_faults.FOLDER
# Run on a node, which sees its pods' processes: @@ is done with the pid of each rank's process 1.
AT_RANKS = """
import os, subprocess
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
    except OSError:
        continue
    if words[1:3] == [b"/sparkloom/rank", b"--"]:
        @@
"""


def at_ranks(node: str, deed: str) -> None:
    """One Python statement with `pid`, for every rank on a node (its container's name)."""
    run(["docker", "exec", "-i", node, "python3", "-"], stdin=AT_RANKS.replace("@@", deed))


@contextmanager
def broken(node: str, fault: str, rail: str) -> Iterator[None]:
    faults.break_(node, fault, [rail])
    try:
        yield
    finally:
        faults.mend(node, fault, [rail])


def without_address(node: str, interface: str) -> None:
    """The rank on a node has an interface without its address, until its pod is made again."""
    flush = f"'ip', 'address', 'flush', 'dev', '{interface}'"
    at_ranks(names.NODES[node], f"subprocess.run(['nsenter', f'--net=/proc/{{pid}}/ns/net', {flush}], check=True)")


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
