"""Holds the site for one run: a Lease in the cluster names who works on it, until that process ends."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kubernetes import client as kube
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.now.labels import RUNS
from sparkloom.site import client, lease, lease_renewal

LIMIT = ("-l", "--limit")
SECRET = re.compile(r"([\w-]*(?:pass|token|key|secret)[\w-]*\s*[=:]).*", re.IGNORECASE | re.DOTALL)


@contextmanager
def by_this_process(cluster: Cluster, say: Callable[[str], object]) -> Iterator[None]:
    """For a command that changes the site without Ansible; one that fails leaves that it did not end."""
    if (told := held(cluster, os.getpid(), say)).get("failed"):
        raise InputError.single(cluster.name, str(told["msg"]), rule="held")
    yield
    lease.notes(os.getpid()).write_text(json.dumps({"ended": lease_renewal.GOOD}))


def person() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


def held(cluster: Cluster, run: int, say: Callable[[str], object], wait: float = 0, over: str = "") -> dict[str, Any]:
    """By the process `run`. Without a cluster that answers there is nothing to hold."""
    notes, who = lease.notes(run), person()
    mine = lease.Operation(who, lease.machine(), lease.begun(run), command(run))
    try:
        api = kube.CoordinationV1Api(client.of(cluster).core.api_client)
        book = lease.Book(api, cluster.name)
        held, _ = book.read()
        if held and held.same(mine) and held.state == RUNS:
            return {"msg": "held by this run"}
        before = lease.take(book, mine, wait=wait, over=over, say=say)
    except lease.Held as held_by:
        return {"failed": True, "msg": str(held_by)}
    except (InputError, ApiException, HTTPError) as error:
        return {"msg": f"nothing to hold: no cluster answers yet ({type(error).__name__})"}
    _keep(cluster, mine, notes)
    return {"msg": lease.half_done(before) if before else f"{who} works on {cluster.name}"}


def _keep(cluster: Cluster, mine: lease.Operation, notes: Path) -> None:
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text("{}")
    words = [sys.executable, "-m", "sparkloom.site.lease_renewal", client.kubeconfig(cluster), cluster.name, str(notes)]
    renewal = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert renewal.stdin
    renewal.stdin.write(json.dumps(asdict(mine)).encode())
    renewal.stdin.close()


def command(process: int) -> str:
    """As the person typed it, without paths of programs, and without what may be a secret: everybody reads a Lease."""
    words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    started = next((at for at, word in enumerate(words) if Path(word).name.startswith(("ansible", "sparkloom"))), 0)
    return shlex.join([Path(words[started]).name, *(_shown(word) for word in words[started + 1 :])]) if words else "?"


def limited(left: Sequence[str], process: int) -> str:
    """Why a run for some of the Sparks is refused, and what to type in place of it."""
    found = f"found a limit that leaves out {', '.join(left)}; expected none, as this changes what all Sparks share"
    cure = f"For all of them: {_whole(process)}; if those are away, add -e operation_leave_out=true to what you typed"
    return f"{found}. Nothing of that was changed. {cure}"


def rest(left: Sequence[str], process: int) -> str:
    """What a run for some of the Sparks has not done, for its last line."""
    return f"what serves was left as it is, as {', '.join(left)} had no part in it; for all: {_whole(process)}"


def _whole(process: int) -> str:
    """What was typed, without its limit."""
    words = shlex.split(command(process))
    given = {at + 1 for at, word in enumerate(words) if word in LIMIT}
    return shlex.join(word for at, word in enumerate(words) if at not in given and not word.startswith(LIMIT))


def _shown(word: str) -> str:
    """Several variables can be one word: from the first secret's name on nothing of it is told."""
    before, brace, _ = word.partition("{")
    return SECRET.sub(r"\1***", f"{before}{{...}}" if brace else word)
