"""A rack that serves a list: its inventory, its plays, its pods, and GPUs that several pods may have."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.base import names
from testbed.beds.rack import cluster, inventory
from testbed.trials import neighbours
from tests.rack.running import run

SITE = names.REPO / ".build" / f"fleet-{names.CLUSTER}"
BY_TAG = names.REPO / ".build/by-tag"
GATEWAY = names.STATE / "gateway"


def write(text: str) -> None:
    file = SITE / "group_vars/all/cluster.yml"
    original = (inventory.path() / "group_vars/all/cluster.yml").read_text()
    file.write_text(re.sub(r"^profile: .*\n", lambda _: text, original, flags=re.M))


def play(*words: str) -> str:
    done = run("ansible-playbook", "-i", str(SITE), *words, ANSIBLE_NOCOLOR="1")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def pods() -> dict[str, str]:
    """The engines' pods that there are, by name; a pod that was made anew has another identity."""
    told = cluster.kubectl("-n", "sparkloom", "get", "pods", "-l", "app.kubernetes.io/component=engine", "-o", "json")
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in json.loads(told)["items"]}


def groups(found: dict[str, str]) -> dict[str, int]:
    ranks = [re.sub(r"-rank\d+-0$", "", name) for name in found]
    return {name: ranks.count(name) for name in sorted(set(ranks))}


def begin(*profiles: str) -> None:
    """An inventory of its own, and what these profiles run in on every node."""
    loaded = run(".venv/bin/python", "-m", "testbed", "engine", "load", *profiles)
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(inventory.path(), SITE)
    (SITE / "group_vars/all/images.yml").unlink(missing_ok=True)


def key_of(person: str, models: str) -> str:
    done = run("sparkloom", "keys", "add", person, "--models", models, "-i", str(SITE), "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


def endpoint() -> neighbours.Endpoint:
    return neighbours.Endpoint(cluster.nodes()[names.NODES["spark1"]]["ip"], GATEWAY / "ca.pem")


@contextmanager
def shared_gpus() -> Iterator[None]:
    """The rack's nodes offer their GPU once, by a program of their own; for a list ours does, to several pods."""
    own = "systemctl {} --now sparkloom-gpu 2>/dev/null"
    for node in names.NODES.values():
        cluster.node_sh(node, own.format("disable"))
    until = time.monotonic() + 120
    while any(row["gpu"] != "0" for row in cluster.nodes().values()) and time.monotonic() < until:
        time.sleep(1)
    yield
    # Ours takes the socket along when it ends: theirs begins after it.
    gone = ("delete", "daemonset", "sparkloom-gpu", "--ignore-not-found", "--cascade=foreground")
    cluster.kubectl("-n", "kube-system", *gone)
    for node in names.NODES.values():
        cluster.node_sh(node, own.format("enable"))
    until = time.monotonic() + 120
    while any(row["gpu"] != "1" for row in cluster.nodes().values()) and time.monotonic() < until:
        time.sleep(1)
