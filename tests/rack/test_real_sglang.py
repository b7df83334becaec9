"""SGLang itself on the rack, two nodes over the rails: what the product promises of an engine, judged by the engine.

CPU and gloo in the place of GPU and NCCL (testbed/make/real/sglang.py); all else is the shipped release.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator

import pytest

from sparkloom.inputs import profile
from sparkloom.launch import engines, ports
from testbed.beds.rack import cluster, inventory
from testbed.standins.hub import tiny
from testbed.trials import kills
from tests.rack.running import run

ASKED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_ENGINES"), reason="make test-engines, or SPARKLOOM_ENGINES=1")
pytestmark = [pytest.mark.rack, pytest.mark.slow, pytest.mark.engines, ASKED]
NAME = "tiny-dense--sglang-2node"
SITE = ["ansible-playbook", "-i", str(inventory.path()), "site.yml", "-e", f"profile={NAME}"]
# NCCL is what a CPU lacks: nothing proves the rails in a log of gloo's.
GLOO = ["-e", "model_serving_transport=warn"]
BACK = 420.0  # seconds: both ranks import torch anew on these two cores
ASKS = """
import json, sys, time, urllib.request
key = open('/sparkloom/key/key').read().strip()
body = {'model': 'tiny', 'messages': [{'role': 'user', 'content': 'Hello'}], 'max_tokens': %d, 'stream': True,
        'ignore_eos': True, 'stream_options': {'include_usage': True}}
request = urllib.request.Request('http://127.0.0.1:30000/v1/chat/completions', json.dumps(body).encode(),
                                 {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})
begun, pieces, usage, end = time.monotonic(), 0, None, 'cut without a word'
try:
    for line in urllib.request.urlopen(request, timeout=%d):
        if line.startswith(b'data: {'):
            told = json.loads(line[6:])
            usage = told.get('usage') or usage
            pieces += any(choice['delta'].get('content') for choice in told['choices'])
        elif line.startswith(b'data: [DONE]'):
            end = 'whole'
except Exception as error:
    end = repr(error)
print(json.dumps({'pieces': pieces, 'usage': usage, 'end': end, 'seconds': time.monotonic() - begun}))
"""


METRICS = """
import urllib.request
key = {'Authorization': 'Bearer ' + open('/sparkloom/key/key').read().strip()}
print(urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:30000/metrics', headers=key)).read().decode())
"""


@pytest.fixture(scope="module", autouse=True)
def profiles() -> Iterator[None]:
    before = os.environ.get(profile.OWN)
    os.environ[profile.OWN] = str(tiny.PROFILES)
    yield
    os.environ.pop(profile.OWN)
    if before:
        os.environ[profile.OWN] = before


@pytest.fixture(scope="module")
def group(profiles: None) -> kills.ServedGroup:
    built = run(".venv/bin/python", "-m", "testbed", "engine", "real", "spark1", "spark2")
    assert built.returncode == 0, built.stderr[-3000:]
    done = run(*SITE, *GLOO, "-e", "model_serving_replace=true")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "2 ranks ready after" in done.stdout
    return kills.ServedGroup.of()


def inside(pod: str, program: str) -> str:
    return cluster.kubectl("-n", "sparkloom", "exec", pod, "--", "python3", "-c", program)


def pod(group: kills.ServedGroup, rank: int) -> str:
    return str(group.pods()[rank].metadata.name)


def asked(group: kills.ServedGroup, tokens: int = 24, patience: int = 120) -> dict[str, object]:
    told: dict[str, object] = json.loads(inside(pod(group, 0), ASKS % (tokens, patience)))
    return told


def back(group: kills.ServedGroup, epoch: int) -> float:
    begun = time.monotonic()
    while not group.serves(epoch):
        assert time.monotonic() - begun < BACK, group.told()
        time.sleep(2)
    return time.monotonic() - begun


def test_it_streams_what_its_own_usage_counts(group: kills.ServedGroup) -> None:
    told = asked(group)
    assert told["end"] == "whole" and told["usage"]["completion_tokens"] == 24, told  # type: ignore[index]


def test_it_answers_through_the_endpoint(group: kills.ServedGroup) -> None:
    done = run("sparkloom", "status", "-i", str(inventory.path()))
    assert done.returncode == 0, done.stdout
    site = run(*SITE, *GLOO)
    assert site.returncode == 0 and "changed=0" in site.stdout, site.stdout[-3000:]
    assert NAME in site.stdout.splitlines()[-1], site.stdout[-500:]


def test_the_counters_that_we_read_are_its_own(group: kills.ServedGroup) -> None:
    page = inside(pod(group, 0), METRICS)
    known = set(re.findall(r"^([a-z][\w:]*)", page, re.M))
    requests, moves = engines.counters("sglang")
    assert {*requests, *moves} <= known, {*requests, *moves} - known


def test_a_client_needs_the_key(group: kills.ServedGroup) -> None:
    asks = "import urllib.request as u, urllib.error as e\ntry:\n print(u.urlopen('http://127.0.0.1:30000/v1/models').status)"
    assert inside(pod(group, 0), f"{asks}\nexcept e.HTTPError as error:\n print(error.code)").strip() == "401"


def test_it_listens_where_the_table_says_and_at_ports_of_chance(group: kills.ServedGroup) -> None:
    loaded = profile.load(NAME)
    said = engines.get("sglang").ports({}, {}, loaded.profile.engine.release, 2)
    fixed = {port.number for port in [*said, *ports.OURS]}
    reads = "print(open('/proc/net/tcp').read() + open('/proc/net/tcp6').read())"
    low = int(inside(pod(group, 0), "print(open('/proc/sys/net/ipv4/ip_local_port_range').read())").split()[0])
    for rank in (0, 1):
        table = inside(pod(group, rank), reads)
        open_ports = {int(found, 16) for found in re.findall(r":([0-9A-F]{4}) [0-9A-F]+:0000 0A", table)}
        assert {number for number in open_ports if number < low} <= fixed, open_ports
        if rank == 0:
            assert {30000, ports.RENDEZVOUS} <= open_ports


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_scheduler_brings_the_group_back_and_no_client_waits(group: kills.ServedGroup, rank: int) -> None:
    epoch, told = group.epoch(), dict[str, object]()
    client = threading.Thread(target=lambda: told.update(asked(group, 3000, 300)))
    client.start()
    time.sleep(5)
    scheduler = group.status(pod(group, rank))["schedulers"][0]
    begun = time.monotonic()
    inside(pod(group, rank), f"import os; os.kill({scheduler}, 9)")
    client.join(60)
    assert not client.is_alive() and time.monotonic() - begun < 60, "its client still waits"
    assert told["pieces"] and told["end"] != "whole", told
    back(group, epoch)
    assert asked(group)["end"] == "whole"
    log = cluster.kubectl("-n", "sparkloom", "logs", pod(group, rank))
    assert re.search(r"failed: .*scheduler|failed: .*the engine", log), log[-3000:]


def test_a_frozen_scheduler_is_found(group: kills.ServedGroup) -> None:
    """Idle: nobody asks, and the ranks' own question gets no answer."""
    epoch = group.epoch()
    scheduler = group.status(pod(group, 1))["schedulers"][0]
    inside(pod(group, 1), f"import os, signal; os.kill({scheduler}, signal.SIGSTOP)")
    begun = time.monotonic()
    while group.serves(epoch - 1):
        assert time.monotonic() - begun < 180, "it still counts as serving"
        time.sleep(1)
    print(f"found after {time.monotonic() - begun:.0f} s")
    back(group, epoch)


def test_it_goes_within_its_grace(group: kills.ServedGroup) -> None:
    begun = time.monotonic()
    done = run(
        "ansible-playbook", "-i", str(inventory.path()), "playbooks/teardown.yml", "-e", "teardown_serving=true",
        "-e", f"profile={NAME}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert not group.pods() and time.monotonic() - begun < 90
