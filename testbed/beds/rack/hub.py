"""The hub beside a rack: on the address by which its nodes reach this machine, until the rack goes down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

from testbed.base import names, store
from testbed.base.shell import RackError, out
from testbed.base.steps import Say, Step

PORT = 8642
URL = names.STATE / "hub"  # the inventory reads it from here
PID = names.CACHE / f"hub-{names.CLUSTER}.pid"  # one rack, one hub, whichever checkout began it
DATA = names.CACHE / "hub"
SOURCES = names.REPO / "testbed/standins/hub"
CODE = names.STATE / "hub.code"  # of which sources the running one is
LOG = names.STATE / "hub.log"
SECONDS = 20


def gateway() -> str:
    """This machine's address in the rack's Docker network."""
    networks = json.loads(out(["docker", "network", "inspect", names.CLUSTER, "--format", "{{json .IPAM.Config}}"]))
    return str(next(entry["Gateway"] for entry in networks if "." in entry.get("Gateway", "")))


def answers() -> bool:
    try:
        url = URL.read_text().strip()
        with urlopen(f"{url}/_stats", timeout=3) as reply:
            return bool(reply.status == 200)
    except (OSError, URLError, ValueError):
        return False


def _code() -> str:
    return store.key_of([SOURCES])


def current() -> bool:
    return answers() and CODE.exists() and CODE.read_text() == _code()


def start(say: Say) -> None:
    stop()
    address = gateway()
    say(f"listening on {address}:{PORT}; generates the weights that a profile asks for (log: {LOG})")
    command = [sys.executable, "-m", "testbed", "hub", "--data", str(DATA)]
    command += ["serve", "--host", address, "--port", str(PORT), "--profiles"]
    with LOG.open("ab") as log:
        # a session of its own: it outlives this command
        process = subprocess.Popen(
            command,
            cwd=names.REPO,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    PID.write_text(f"{process.pid}\n")
    URL.write_text(f"http://{address}:{PORT}\n")
    CODE.write_text(_code())
    until = time.monotonic() + SECONDS
    while not answers():
        if process.poll() is not None or time.monotonic() > until:
            raise RackError(f"the model hub did not start; its log is {LOG}")
        time.sleep(0.1)


def stop() -> None:
    """Only a process that is this hub, not a later one that got its number."""
    try:
        pid = int(PID.read_text())
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - read at once, no path to keep
            ours = b"testbed\0hub" in file.read()
    except (OSError, ValueError):
        return
    if ours:
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + SECONDS
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:  # noqa: PTH110 - its port is free then
            time.sleep(0.05)
    PID.unlink(missing_ok=True)


def steps() -> list[Step]:
    return [Step("hub", "a small model hub for the nodes, in place of the public one", current, start)]
