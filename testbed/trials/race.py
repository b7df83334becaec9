"""The ways to bring weights to four nodes, timed on the rack's rails.

Each rail can be shaped (--rate-mbit), since this machine's cores and its one disk are shared by all nodes: the question
is how much of a link each way uses, not how fast this machine copies memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkloom.inputs import inventory
from sparkloom.launch import fabric
from sparkloom.render import pack
from testbed.base import names

INVENTORY = names.REPO / "inventories" / "kind"
STORE = "/var/lib/sparkloom-race"
SOURCE = f"{STORE}/source"
MODEL = "race/weights"
PORT, RSYNC_PORT = 20999, 20998
NODES = list(names.NODES)


def sh(node: str, script: str, stdin: bytes = b"") -> str:
    ran = subprocess.run(
        ["docker", "exec", "-i", names.NODES[node], "bash", "-c", script], input=stdin, capture_output=True
    )
    if ran.returncode:
        raise SystemExit(f"{node}: {ran.stderr.decode().strip() or ran.stdout.decode().strip()}")
    return ran.stdout.decode()


def rails(node: str) -> list[fabric.Endpoint]:
    site = inventory.load(INVENTORY)
    return list(fabric.plan(site).of(node, site.fabric.check_vf))


def everywhere(work: Callable[[str], Any], nodes: list[str] = NODES) -> None:
    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(work, nodes))


def prepare(size_mb: int, files: int, program: Path) -> None:
    everywhere(lambda node: sh(node, f"rm -rf {STORE}; mkdir -p {STORE}"))
    each = size_mb * 1_000_000 // files
    everywhere(lambda node: sh(node, f"cat > {STORE}/weights.pyz", program.read_bytes()))
    sh(
        NODES[0],
        f"mkdir -p {SOURCE}; for i in $(seq {files}); do head -c {each} /dev/urandom > {SOURCE}/$i.safetensors; done",
    )
    ours(NODES[:1], {"kind": "folder", "path": SOURCE})


def shape(rate_mbit: int) -> None:
    def limited(node: str) -> None:
        # Both functions of a rail are on one subnet: packets leave by either.
        for end in fabric.plan(inventory.load(INVENTORY)).of(node):
            sh(node, f"tc qdisc del dev {end.interface} root 2>/dev/null || true")
            if rate_mbit:
                limit = f"tbf rate {rate_mbit}mbit burst 256kb latency 100ms"
                sh(node, f"tc qdisc add dev {end.interface} root {limit}")

    everywhere(limited)


def clear(node: str) -> None:
    sh(node, f"rm -rf {STORE}/hub {STORE}/in; mkdir -p {STORE}/in; sync")


def ask(node: str, command: str, asked: dict[str, Any] | None = None) -> Any:
    answer = json.loads(sh(node, f"python3 {STORE}/weights.pyz {command} || true", json.dumps(asked or {}).encode()))
    return answer["answer"]


def ours(line: list[str], source: dict[str, Any], connections: int = 8) -> None:
    want = {"id": MODEL, "revision": None, "include": ["*"], "exclude": []}

    def start(node: str) -> None:
        place = line.index(node)
        before = line[place - 1]
        peer = {"kind": "peer", "name": before, "addresses": [e.address for e in rails(before)], "port": PORT}
        spec = {
            "job": f"race-{time.time()}",
            "run": "race",
            "store": f"{STORE}/hub",
            "models": [want],
            "source": {**peer, "run": "race"} if place else source,
            "listen": [end.address for end in rails(node)],
            "port": PORT,
            "connections": connections,
            "downstream": node != line[-1],
        }
        ask(node, "start", spec)

    everywhere(start, line)
    for node in line:
        while (status := ask(node, "status"))["state"] not in {"done", "failed"}:
            time.sleep(0.1)
        if status["state"] == "failed":
            raise SystemExit(f"{node}: {status['cause']}")


def one_copy() -> None:
    ours(NODES[:2], {"kind": "own"})


def chain() -> None:
    ours(NODES, {"kind": "own"})


def rsync(node: str) -> None:
    address = rails(NODES[0])[0].address
    sh(node, f"rsync -a --whole-file rsync://{address}:{RSYNC_PORT}/race/ {STORE}/in/ && cd {STORE}/in && sha256sum *")


def rsyncd() -> None:
    text = f"pid file = {STORE}/rsyncd.pid\n[race]\npath = {SOURCE}\nuse chroot = no\n".encode()
    sh(NODES[0], f"cat > {STORE}/rsyncd.conf", text)
    sh(NODES[0], f"rsync --daemon --port {RSYNC_PORT} --config {STORE}/rsyncd.conf")


def rsync_serial() -> None:
    for node in NODES[1:]:
        rsync(node)


def rsync_parallel() -> None:
    everywhere(rsync, NODES[1:])


def tee_chain() -> None:
    """tar | socat, each node writing and passing on; nothing is verified, nothing can go on where it stopped."""
    last = len(NODES) - 1

    def pass_on(node: str) -> None:
        place = NODES.index(node)
        after = rails(NODES[place + 1])[0].address if place < last else ""
        give = f"socat -u - TCP:{after}:{PORT},retry=50,interval=0.1"
        take = f"socat -u TCP-LISTEN:{PORT},reuseaddr -"
        unpack = f"tar -x -C {STORE}/in"
        if place == 0:
            sh(node, f"tar -c -C {SOURCE} . | {give}")
        elif place < last:
            sh(node, f"set -o pipefail; {take} | tee >({give}) | {unpack}")
        else:
            sh(node, f"{take} | {unpack}")

    everywhere(pass_on)


WAYS: dict[str, Callable[[], None]] = {
    "ours, one copy": one_copy,
    "ours, chain to three": chain,
    "rsync, one copy": lambda: rsync(NODES[1]),
    "rsync, three in turn": rsync_serial,
    "rsync, three at once": rsync_parallel,
    "tar | tee | socat chain, one rail, unverified": tee_chain,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed race", description=__doc__)
    parser.add_argument("--size-mb", type=int, default=600, help="of all files together (default: 600)")
    parser.add_argument("--files", type=int, default=8, help="how many (default: 8)")
    parser.add_argument("--rate-mbit", type=int, default=0, help="per rail; 0 = not shaped")
    parser.add_argument("--only", default="", help="only the ways whose name begins so")
    args = parser.parse_args()
    prepare(args.size_mb, args.files, pack.program("weights").keep(names.STATE))
    try:
        rsyncd()
        shape(args.rate_mbit)
        for name, way in ((n, w) for n, w in WAYS.items() if n.startswith(args.only)):
            everywhere(clear, NODES[1:])
            started = time.monotonic()
            way()
            seconds = time.monotonic() - started
            print(f"{name:<48}{seconds:6.1f} s  {args.size_mb / seconds:6.1f} MB/s", flush=True)
    finally:
        shape(0)
        sh(NODES[0], f"pkill -F {STORE}/rsyncd.pid 2>/dev/null || true")
        everywhere(lambda node: sh(node, f"rm -rf {STORE}"))
    return 0
