"""No secret of a run shows in a command line, an environment, an object, a log at -vvv, a file or a report."""

from __future__ import annotations

import json
import re
import secrets
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.render import keys
from sparkloom.site.client import Client
from testbed.base import names
from testbed.beds.bare import machines as bare
from testbed.beds.rack import cluster, hub, inventory
from testbed.trials import leaks
from testbed.trials.kills import NAMESPACE
from tests.rack import running
from tests.rack.running import REPO

STORE = "/var/lib/sparkloom/hub"
RACK_KEYS = names.STATE / "gateway"
pytestmark = [pytest.mark.rack, pytest.mark.slow]


def run(*argv: str, check: bool = True, **env: str) -> str:
    done = running.run(*argv, **env)
    assert done.returncode == 0 or not check, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def play(place: Path, playbook: str, **env: str) -> tuple[str, leaks.Watch]:
    with leaks.Watch() as watch:
        output = run("ansible-playbook", "-i", str(place), playbook, "-vvv", "--diff", ANSIBLE_NOCOLOR="1", **env)
    assert len(watch.texts) > 100
    return output, watch


def asked_with_token() -> int:
    with urllib.request.urlopen(f"{hub.URL.read_text().strip()}/_stats", timeout=5) as reply:
        return int(json.load(reply)["with_token"])


def test_the_hub_token_and_the_endpoint_key() -> None:
    run(sys.executable, "-m", "testbed", "engine", "load")
    for container in names.NODES.values():  # else the weights are there, and nobody needs the token
        run("docker", "exec", container, "rm", "-rf", STORE)
    token, key, before = f"hf_{secrets.token_hex(20)}", f"sk-{secrets.token_hex(20)}", asked_with_token()
    keys.write(RACK_KEYS / "api-key", key + "\n")
    output, watch = play(inventory.path(), "site.yml", HF_TOKEN=token)
    assert asked_with_token() > before
    held = [token, key, engine_key(), *group_secrets(), *private_keys(RACK_KEYS)]
    assert not leaks.found(output, held)
    assert watch.hits(held) == []
    assert leaks.in_cluster(held) == []
    assert [hit for container in names.NODES.values() for hit in leaks.in_files(container, held)] == []
    for folder in (REPO / "build", REPO / ".build"):
        assert leaks.in_folder(folder, held, but=RACK_KEYS.iterdir()) == []
    for report in (["status", "--json"], ["logs"], ["doctor"]):
        assert not leaks.found(run("sparkloom", *report, "-i", str(inventory.path()), check=False), held)


def engine_key() -> str:
    """The engine's own, which no client has."""
    kept = Client.at(str(names.KUBECONFIG), NAMESPACE).secret(ONLY_KEY) or {}
    return kept[keys.BARE_FILE]


def group_secrets() -> list[str]:
    """What the ranks of each group that was served here know each other by."""
    kept = Client.at(str(names.KUBECONFIG), NAMESPACE)
    listed = cluster.kubectl("get", "secrets", "-n", NAMESPACE, "-o", "name").split()
    groups = [name.removeprefix("secret/") for name in listed if name.endswith("-group")]
    assert groups
    return [(kept.secret(name) or {})[keys.GROUP_FILE] for name in groups]


def private_keys(folder: Path) -> list[str]:
    """A line from the middle of each."""
    return [path.read_text().splitlines()[3] for path in folder.iterdir() if "PRIVATE KEY" in path.read_text()]


@pytest.fixture
def bare_machines() -> Iterator[None]:
    run(sys.executable, "-m", "testbed", "bare", "up")
    yield
    run(sys.executable, "-m", "testbed", "bare", "down")


def test_the_tokens_of_k3s(bare_machines: None) -> None:
    output, watch = play(REPO / "inventories/bare", "playbooks/cluster.yml")
    ours = list(bare.there())
    read = "cat /etc/rancher/k3s/sparkloom-*token /var/lib/rancher/k3s/server/token 2>/dev/null; true"
    told = {word for container in ours for word in run("docker", "exec", container, "sh", "-c", read).split()}
    held = sorted({word.split(":")[-1] for word in told})
    assert len(held) >= 2 and all(len(word) >= 16 for word in held)
    assert not leaks.found(output, held)
    assert watch.hits(held) == []
    hits = [hit for container in ours for hit in leaks.in_files(container, held)]
    assert [hit for hit in hits if not re.search(r" /etc/rancher/k3s/sparkloom-(agent-)?token$", hit)] == []
    assert leaks.in_folder(REPO / ".build", held) == []
