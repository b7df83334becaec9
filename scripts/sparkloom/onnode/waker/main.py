"""`--groups FILE --namespace NAME [--port N]`: wakes groups that are asked for, and puts to sleep whom nobody asks."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
import time
from pathlib import Path

from sparkloom.onnode.kube import InCluster
from sparkloom.onnode.waker.cluster import Cluster
from sparkloom.onnode.waker.controller import Controller
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.lease import Lease
from sparkloom.onnode.waker.server import Server
from sparkloom.onnode.waker.state import GroupsFile

PORT = 8091
LATE = 4.0  # seconds in which some still come when it is told to go, who do not know yet that it leaves


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
        return _run(asked)
    except OSError as error:
        say(f"{error}")
        return 2


def say(line: str) -> None:
    print(f"waker: {line}", flush=True)


def _run(asked: argparse.Namespace) -> int:
    clock = time.monotonic
    reached = InCluster()
    me = f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.urandom(4).hex()}"
    groups = Groups(clock)
    lease = Lease(reached, asked.namespace, me, clock)
    cluster = Cluster(reached, asked.namespace, asked.probes, asked.figures)
    controller = Controller(groups, GroupsFile(asked.groups), cluster, lease, say)
    server = Server((asked.address, asked.port), groups, controller)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # of all threads to come: it is waited for below
    looks = threading.Thread(target=controller.run)
    looks.start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"listens at {asked.address}:{asked.port} as {me}")
    signal.sigwait({signal.SIGTERM})
    say(f"leaves; {server.waiting} requests wait")
    controller.leave()
    begun = clock()
    looks.join()
    while server.waiting or clock() - begun < LATE:
        time.sleep(0.1)
    server.shutdown()
    return 0
