"""`--groups FILE --namespace NAME [--port N]`: wakes groups that are asked for, and puts to sleep whom nobody asks."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import time
from pathlib import Path

from sparkloom.onnode.kube import InCluster
from sparkloom.onnode.waker.body import Room
from sparkloom.onnode.waker.cluster import Cluster
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.keeper import Keeper
from sparkloom.onnode.waker.lease import Lease
from sparkloom.onnode.waker.server import Server
from sparkloom.onnode.waker.told import Told

PORT = 8091
GRACE = 50.0  # seconds that answers have which it passes on, when it is told to go; an engine that drains gives 40
LATE = 4.0  # seconds in which some still come, who do not know yet that it leaves


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("waker", description=__doc__)
    parser.add_argument("--groups", type=Path, required=True, help="file that says which groups are on demand")
    parser.add_argument("--namespace", required=True, help="of the site's objects")
    parser.add_argument(
        "--probes", type=int, required=True, help="port at which supervisors say whether they are ready"
    )
    parser.add_argument("--figures", type=int, required=True, help="port of the router's figures")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=PORT)
    asked = parser.parse_args(words)
    try:
        return asyncio.run(_run(asked))
    except OSError as error:
        say(f"{error}")
        return 2


def say(line: str) -> None:
    print(f"waker: {line}", flush=True)


async def _run(asked: argparse.Namespace) -> int:
    clock = time.monotonic
    reached = InCluster()
    me = f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.urandom(4).hex()}"
    groups = Groups(clock)
    lease = Lease(reached, asked.namespace, me, clock)
    cluster = Cluster(reached, asked.namespace, asked.probes, asked.figures)
    keeper = Keeper(groups, Told(asked.groups), cluster, lease, say)
    server = Server(groups, keeper, Room(), say)
    listener = await server.listen(asked.address, asked.port)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    looks = asyncio.ensure_future(keeper.run())
    say(f"listens at {asked.address}:{asked.port} as {me}")
    await told.wait()
    say(f"leaves; {server.busy} requests are on their way")
    keeper.leave()
    begun = clock()
    await looks
    while clock() - begun < GRACE and (server.busy or clock() - begun < LATE):
        await asyncio.sleep(0.1)
    listener.close()
    return 0
