"""Holds the site for one run: a Lease in the cluster names who works on it, until this run of Ansible ends."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from kubernetes import client as kube
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.site import client, lease
from sparkloom.site.ansible import Context, Data

SECRET = re.compile(r"([\w-]*(?:pass|token|key|secret)[\w-]*\s*[=:]).*", re.IGNORECASE | re.DOTALL)


def hold(
    context: Context,
    wait_seconds: float,  # how long another operation is waited for
    take_over: str,  # whose operation is ended in favour of this one: its name
) -> Data:
    """Without a cluster that answers there is nothing to hold."""
    cluster, run = context.cluster, os.getppid()
    notes = lease.notes(run)
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    mine = lease.Operation(who, lease.machine(), lease.begun(run), command(run))
    try:
        api = kube.CoordinationV1Api(client.of(cluster).core.api_client)
        book = lease.Book(api, cluster.name)
        held, _ = book.read()
        if held and held.same(mine) and held.state == lease.RUNS:
            return {"msg": "held by this run"}
        before = lease.take(book, mine, wait=wait_seconds, over=take_over, say=context.say)
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
    started = next((at for at, word in enumerate(words) if "ansible" in Path(word).name), 0)
    return shlex.join([Path(words[started]).name, *(_shown(word) for word in words[started + 1 :])]) if words else "?"


def _shown(word: str) -> str:
    """Several variables can be one word: from the first secret's name on nothing of it is told."""
    before, brace, _ = word.partition("{")
    return SECRET.sub(r"\1***", f"{before}{{...}}" if brace else word)
