"""`--folder FOLDER --namespace NAME [--port N]`: shows a site by its files, and acts for who may administer."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from sparkloom.onnode.kube import InCluster
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.page.acting import Desk
from sparkloom.onnode.page.server import Kept, Server, files
from sparkloom.onnode.page.site import Site

PORT = 8090


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("page", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the page's own files")
    parser.add_argument("--namespace", required=True, help="of the site's objects")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=PORT)
    asked = parser.parse_args(words)
    # The first process of a container is not ended by a signal that it does not take.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    reached = InCluster()
    kept = Kept(Gatherer(reached, asked.namespace).look)
    desk = Desk(Site(reached, asked.namespace))
    try:
        server = Server((asked.address, asked.port), files(asked.folder), kept, desk)
    except OSError as error:
        print(f"page: {error}", flush=True)
        return 2
    print(f"page: listens at {asked.address}:{asked.port}", flush=True)
    server.serve_forever()
    return 0
