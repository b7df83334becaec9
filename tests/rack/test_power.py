"""The power goes and comes back: cut, and back in any order, the switch last; off by `stop.yml`, the server last."""

from __future__ import annotations

import os
import random
import re
import time

import pytest

from testbed.base import names
from testbed.beds.rack import faults, inventory
from testbed.trials import kills
from tests.later import LATER
from tests.rack.running import run, site_status
from tests.until import until

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]
SEED, ORDERS = (
    int(os.environ.get(name, usual)) for name, usual in (("SPARKLOOM_SEED", "0"), ("SPARKLOOM_ORDERS", "6"))
)
APART, SWITCH = 15.0, 45.0  # seconds at most between two Sparks, and until the switch is up
SERVES = 60.0  # after the switch, beside what the engine itself takes
SERVER = names.NODES["spark1"]


def testbed(*words: str) -> None:
    done = run("python", "-m", "testbed", *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def cut() -> None:
    """All at once, the switch too: no port has a carrier until it is back, and no process of before answers."""
    for name in names.NODES:
        faults.break_(name, "link-down", names.RAILS)
    assert run("docker", "kill", *names.NODES.values()).returncode == 0


def back(chance: random.Random) -> str:
    """In an order by chance; says which. What `rack up` does is a machine's cards and Kubernetes' own network."""
    order = chance.sample(sorted(names.NODES), len(names.NODES))
    for name in order:
        assert run("docker", "start", names.NODES[name]).returncode == 0
        time.sleep(chance.uniform(0, APART))
    testbed("rack", "up")
    time.sleep(chance.uniform(0, SWITCH))
    for name in names.NODES:
        faults.mend(name, "link-down", names.RAILS)
    return " ".join(order)


def load(group: kills.ServedGroup) -> float:
    """What the engine itself took, by rank 0's supervisor."""
    told = re.findall(
        r"serving: a token came (\d+) s after the start", kills.kubectl("logs", group.head().metadata.name)
    )
    return float(told[-1])


def test_it_serves_again_in_any_order(group: kills.ServedGroup) -> None:
    """Kernel, load, and a minute: the kernels are up when the switch is."""
    chance, seen = random.Random(SEED), []
    for _ in range(ORDERS):
        cut()
        order = back(chance)
        begun = time.monotonic()
        until(lambda: group.serves(0), 4 * SERVES, f"serving after {order}, the switch last")
        seconds = time.monotonic() - begun
        seen.append((order, seconds - load(group), group.token()))
        print(f"{order}: {seconds:.0f} s after the switch, {load(group):.0f} s of load; {seen[-1][2]}", flush=True)
    assert [row for row in seen if row[1] > SERVES] == [], f"seed {SEED}: {seen}"


def finished(container: str) -> str:
    shown = run("docker", "inspect", "--format", "{{.State.Status}} {{.State.FinishedAt}}", container).stdout.split()
    return shown[1] if shown[0] == "exited" else ""


@pytest.fixture
def plugs() -> None:
    """kind has Docker start a node again that ended by itself."""
    assert run("docker", "update", "--restart=no", *names.NODES.values()).returncode == 0


def test_all_is_switched_off_the_server_last_and_comes_back_stopped(group: kills.ServedGroup, plugs: None) -> None:
    inv = str(inventory.path())
    off = run("ansible-playbook", "-i", inv, "playbooks/stop.yml", "-e", "group=all", "-e", "power_off=true")
    assert off.returncode == 0, off.stdout[-4000:] + off.stderr[-2000:]
    until(lambda: all(map(finished, names.NODES.values())), 120, "all to be off")
    ends = {container: finished(container) for container in names.NODES.values()}
    assert max(ends, key=ends.__getitem__) == SERVER, ends
    for container in names.NODES.values():  # the server first
        assert run("docker", "start", container).returncode == 0
    testbed("rack", "up")
    now = site_status()
    assert not now["serving"] and now["groups"][0]["word"].startswith("stopped by "), now
    start = run("sparkloom", "start", "all", "-i", inv)
    assert start.returncode == 0 and " serves: 4 ranks ready" in start.stdout, start.stdout + start.stderr
    assert "did not end" not in start.stdout + start.stderr, "the run that switched off came to its end"
    assert group.token()
