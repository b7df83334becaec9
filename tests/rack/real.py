"""What the tests of real engines share: a served group of a profile of the test bed, and questions asked in its pods.

They are asked in rank 0's pod, at the engine's own port: no endpoint is between, whose patience would be judged too.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sparkloom.inputs import profile
from testbed.beds.rack import cluster, inventory
from testbed.standins.hub import tiny
from testbed.trials import kills
from tests.rack.running import run

ASKED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_ENGINES"), reason="make test-engines, or SPARKLOOM_ENGINES=1")
MARKS = [pytest.mark.rack, pytest.mark.slow, pytest.mark.engines, ASKED]

# One streamed request; `leave`: pieces after which this client goes away, 0 for never.
ASKS = """
import json, threading, time, urllib.request
def ask(port, model, tokens, patience, words=1, leave=0):
    key = open('/sparkloom/key/key').read().split()[0]
    body = {'model': model, 'messages': [{'role': 'user', 'content': 'Hello ' * words}], 'max_tokens': tokens,
            'stream': True, 'ignore_eos': True, 'stream_options': {'include_usage': True}}
    request = urllib.request.Request(f'http://127.0.0.1:{port}/v1/chat/completions', json.dumps(body).encode(),
                                     {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})
    begun, pieces, usage, end, first = time.monotonic(), 0, None, 'cut without a word', None
    try:
        with urllib.request.urlopen(request, timeout=patience) as answer:
            for line in answer:
                if line.startswith(b'data: {'):
                    told = json.loads(line[6:])
                    end = str(told['error']) if 'error' in told else end
                    usage = told.get('usage') or usage
                    pieces += any(choice['delta'].get('content') for choice in told.get('choices') or ())
                    first = first or time.monotonic() - begun
                    if leave and pieces >= leave:
                        end = 'left'
                        break
                elif line.startswith(b'data: [DONE]'):
                    end = 'whole' if end == 'cut without a word' else end  # vLLM says it after an error too
    except Exception as error:
        end = repr(error)
    return {'pieces': pieces, 'usage': usage, 'end': end, 'first': first, 'seconds': time.monotonic() - begun}
"""
CLIENTS = """
answers, lock = [], threading.Lock()
def one():
    told = ask(%(port)d, %(model)r, %(tokens)d, %(patience)d, %(words)d)
    with lock:
        answers.append(told)
threads = [threading.Thread(target=one) for _ in range(%(clients)d)]
[each.start() for each in threads]
[each.join() for each in threads]
print(json.dumps(answers))
"""
PAGE = """
import urllib.request
key = {'Authorization': 'Bearer ' + open('/sparkloom/key/key').read().split()[0]}
print(urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:%d%s', headers=key)).read().decode())
"""
LISTENS = "print(open('/proc/net/tcp').read() + open('/proc/net/tcp6').read())"
REFUSED = """
import urllib.request as u, urllib.error as e
try:
    print(u.urlopen('http://127.0.0.1:%d/v1/models').status)
except e.HTTPError as error:
    print(error.code)
"""


# What this pod's processes hold alone or share, in kB.
HOLDS = """
import glob, re
found = 0
for path in glob.glob('/proc/[0-9]*/smaps_rollup'):
    try:
        found += int(re.search(r'^Pss: +([0-9]+)', open(path).read(), re.M)[1])
    except (OSError, TypeError):
        pass
print(found)
"""


@dataclass
class Served:
    """A group of one of the test bed's profiles."""

    name: str
    engine: str  # as `testbed engine real` knows it; nothing for the stand-in, whose images the rack has
    port: int
    model: str
    nodes: tuple[str, ...]
    back: float  # seconds within which it is back
    words: tuple[str, ...] = ()  # for ansible-playbook

    def __post_init__(self) -> None:
        self.group = kills.ServedGroup.of()

    @property
    def site(self) -> list[str]:
        return ["ansible-playbook", "-i", str(inventory.path()), "site.yml", "-e", f"profile={self.name}", *self.words]

    def start(self) -> None:
        which = ("real", self.engine, *self.nodes) if self.engine else ("load",)
        built = run(".venv/bin/python", "-m", "testbed", "engine", *which)
        assert built.returncode == 0, built.stderr[-3000:]
        done = run(*self.site, "-e", "model_serving_replace=true")
        assert done.returncode == 0, done.stdout[-6000:]
        assert f"{len(self.nodes)} ranks ready after" in done.stdout

    def stop(self) -> Any:
        teardown = ["playbooks/teardown.yml", "-e", "teardown_serving=true", "-e", f"profile={self.name}"]
        return run("ansible-playbook", "-i", str(inventory.path()), *teardown)

    def pod(self, rank: int) -> str:
        return str(self.group.pods()[rank].metadata.name)

    def inside(self, rank: int, program: str) -> str:
        return cluster.kubectl("-n", "sparkloom", "exec", self.pod(rank), "--", "python3", "-c", program)

    def log(self, rank: int) -> str:
        return cluster.kubectl("-n", "sparkloom", "logs", self.pod(rank))

    def asked(self, tokens: int = 24, patience: int = 120, words: int = 1, leave: int = 0) -> dict[str, Any]:
        asks = f"{ASKS}\nprint(json.dumps(ask({self.port}, {self.model!r}, {tokens}, {patience}, {words}, {leave})))"
        told: dict[str, Any] = json.loads(self.inside(0, asks))
        return told

    def clients_at_once(self, clients: int, tokens: int, words: int, patience: int = 400) -> list[dict[str, Any]]:
        facts = {"port": self.port, "model": self.model, "tokens": tokens, "patience": patience, "words": words}
        told: list[dict[str, Any]] = json.loads(self.inside(0, ASKS + CLIENTS % {**facts, "clients": clients}))
        return told

    @contextmanager
    def somebody_reads(self, tokens: int = 3000, waits: float = 60) -> Iterator[dict[str, Any]]:
        """A client in the middle of a long answer, which ends within so many seconds of what the block does to it."""
        told: dict[str, Any] = {}
        client = threading.Thread(target=lambda: told.update(self.asked(tokens, 300)))
        client.start()
        time.sleep(5)
        begun = time.monotonic()
        yield told
        client.join(waits)
        assert not client.is_alive(), "its client still waits"
        told["waited"] = time.monotonic() - begun

    def listening(self, rank: int) -> set[int]:
        """TCP ports."""
        return {int(found, 16) for found in re.findall(r":([0-9A-F]{4}) [0-9A-F]+:0000 0A", self.inside(rank, LISTENS))}

    def metric(self, name: str) -> float:
        rows = [line for line in self.inside(0, PAGE % (self.port, "/metrics")).splitlines() if line.startswith(name)]
        assert rows, f"no {name}"
        return sum(float(row.rsplit(" ", 1)[1]) for row in rows)

    def holds(self) -> int:
        """Memory of all its processes, in kB."""
        return sum(int(self.inside(rank, HOLDS)) for rank in range(len(self.nodes)))

    def engine_of(self, rank: int) -> int:
        """The process that computes: a scheduler where the engine has one."""
        told = self.group.status(self.pod(rank))
        return int((told.get("schedulers") or [told["engine"]])[0])

    def signal(self, rank: int, number: int) -> None:
        self.inside(rank, f"import os; os.kill({self.engine_of(rank)}, {number})")

    def forget_failures(self) -> None:
        """More than five in ten minutes are too many, and the group stays down: a new pod of rank 0 counts anew."""
        assert kills.once(self.group, "pod", 0).good

    def wait_back(self, epoch: int) -> float:
        begun = time.monotonic()
        while not self.group.serves(epoch):
            assert time.monotonic() - begun < self.back, self.group.described()
            time.sleep(2)
        return time.monotonic() - begun

    def wait_found(self, epoch: int, patience: float) -> float:
        """Seconds until somebody of the group has noticed."""
        begun = time.monotonic()
        while self.group.serves(epoch - 1):
            assert time.monotonic() - begun < patience, "it still counts as serving"
            time.sleep(1)
        return time.monotonic() - begun


@contextmanager
def profiles() -> Iterator[None]:
    """The test bed's profiles are known while this lasts."""
    before = os.environ.get(profile.OWN)
    os.environ[profile.OWN] = str(tiny.PROFILES)
    yield
    os.environ.pop(profile.OWN)
    if before:
        os.environ[profile.OWN] = before
