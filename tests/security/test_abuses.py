"""A person with a key for one model, and what each abuse of it does to others: docs/reference/abuses.md.

`SPARKLOOM_UPDATE_GOLDEN=1` measures longer and writes the page. Here each is held to bars that a busy machine keeps.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from testbed.standins.pacing.process import Engine
from tests.places import REPO
from tests.render.router.running import ALICE, PEOPLE, Router, forget_the_peak, peak, running
from tests.security.abuses import ABUSES, ENDED, MALLORY

pytestmark = pytest.mark.oracle
TERMS = {"megabytes": 100, "memory": 1024}  # as a site has them
PAGE = REPO / "docs" / "reference" / "abuses.md"
WRITES = bool(os.environ.get("SPARKLOOM_UPDATE_GOLDEN"))
SECONDS = 4.0 if WRITES else 2.0
LATE, GROWN = 0.1, 128.0  # seconds at the 99th percentile and MiB: what a person's worst may cost
measured: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    knobs = {"alpha": ("ttft=0.01", "rate=100"), "beta": ("ttft=0.01", "rate=100")}
    knobs["flood"] = ("ttft=0.01", "rate=20000", "per_chunk=200")
    engines = {name: Engine(name, *told) for name, told in knobs.items()}
    people = [*PEOPLE, Key(name="mallory", hash=hashed(MALLORY), models=["alpha", "flood"])]
    people.append(Key(name="ended", hash=hashed(ENDED), expires="2026-01-31"))
    places = {"at_once": 8, "waiting": 32}
    with running(tmp_path_factory.mktemp("abuses"), engines, people, TERMS, alpha=places, flood=places) as made:
        yield made
    for engine in engines.values():
        engine.down()


class Others:
    """Somebody else lists models and asks another one, again and again. How long each took by the clock, and for how
    much of that the router's one worker was at work: what it made others wait, whatever else takes the cores."""

    def __init__(self, router: Router) -> None:
        self.router, self.clock, self.own = router, list[float](), list[float]()
        tasks = Path(f"/proc/{router.process.pid}/task").iterdir()
        (worker,) = [task for task in tasks if (task / "comm").read_text().startswith("wrk:worker")]
        self.worked = worker / "schedstat"

    def go(self) -> None:
        for ask in (lambda: self.router.get("/v1/models"), lambda: self.router.post("beta", ALICE)):
            begun, worked = time.monotonic(), self._seconds()
            assert ask().status == 200
            self.clock.append(time.monotonic() - begun)
            self.own.append(self._seconds() - worked)
            time.sleep(0.01)

    def _seconds(self) -> float:
        return int(self.worked.read_text().split()[0]) / 1e9


@contextlib.contextmanager
def others(router: Router) -> Iterator[Others]:
    asked, over = Others(router), threading.Event()

    def go() -> None:
        while not over.is_set():
            asked.go()

    asking = threading.Thread(target=go)
    asking.start()
    try:
        yield asked
    finally:
        over.set()
        asking.join()


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


def one_try(router: Router, name: str) -> dict[str, Any]:
    with others(router) as quiet:
        time.sleep(SECONDS)
    forget_the_peak(router)
    before = peak(router)
    words = [sys.executable, "-m", "tests.security.abuses", name, str(router.terms.port), str(SECONDS)]
    with others(router) as hit, subprocess.Popen(words, cwd=REPO, stdout=subprocess.PIPE, text=True) as attacker:
        heard = json.loads(attacker.communicate(timeout=SECONDS + 120)[0])
    row = {"heard": heard, "asked": len(hit.clock), "worst": max(hit.own), "grown": peak(router) - before}
    return row | {"quiet": p99(quiet.own), "during": p99(hit.own), "clock": p99(quiet.clock), "hit": p99(hit.clock)}


@pytest.mark.parametrize("name", ABUSES)
def test_what_one_abuse_does_to_others(router: Router, name: str) -> None:
    for _ in range(1 if WRITES else 3):  # a busy machine only adds, so the least of three is the router's own
        row = measured[name] = one_try(router, name)
        assert router.process.poll() is None and row["heard"]
        assert row["grown"] <= GROWN, row
        if row["during"] - row["quiet"] <= 2 * LATE:  # other programs take this machine's caches too
            return
    assert WRITES, row  # the page says which bars were missed


@pytest.fixture(scope="module", autouse=True)
def page() -> Iterator[None]:
    yield
    if WRITES:
        PAGE.write_text(as_page(measured))


HEAD = """# Abuses, measured

What a person with a key for one model can try at [the endpoint](../endpoint.md), and what others notice of it. The
real Envoy runs with a site's files on loopback (1,024 MiB, bodies of 100 MB). The key has no limit per minute, which is
the worst case. `tests/security/test_abuses.py` is the test; with `SPARKLOOM_UPDATE_GOLDEN=1` it writes this page.

{when:%Y-%m-%d %H:%M} UTC, commit {commit}, {cores} cores at a load of {load}, {seconds:.0f} s each. *Others* list
models and ask another model, one request after the other: the 99th percentile of their times just before, and
meanwhile. *The router's time* is what its one worker worked between their question and their answer: that delay is the
router's, whatever else runs on the machine. *By the clock* is with all that ran beside it, the attacker too.

**Bars**: others later by {late:.0f} ms of the router's time, and {grown:.0f} MiB. Missed by: {missed}.
A body that is right is held until it is whole (`gateway_body_megabytes`).

| abuse | it heard | others' requests | router's time, ms | meanwhile | times | worst | by the clock, ms | router, MiB |
|--|--|--|--|--|--|--|--|--|
"""


def as_page(rows: dict[str, dict[str, Any]]) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=REPO, capture_output=True, text=True).stdout
    late = {name for name, row in rows.items() if row["during"] - row["quiet"] > LATE or row["grown"] > GROWN}
    head = HEAD.format(
        when=datetime.datetime.now(datetime.UTC),
        commit=commit.strip(),
        cores=os.cpu_count(),
        load=f"{os.getloadavg()[2]:.0f}",
        seconds=SECONDS,
        late=LATE * 1000,
        grown=GROWN,
        missed="; ".join(ABUSES[name].what for name in rows if name in late) or "none",
    )
    return head + "".join(_line(ABUSES[name].what, row) for name, row in rows.items())


def _line(what: str, row: dict[str, Any]) -> str:
    heard = ", ".join(f"{status}: {count:,}" for status, count in row["heard"].items())
    quiet, during, worst, clock, hit = (row[key] * 1000 for key in ("quiet", "during", "worst", "clock", "hit"))
    times = f"{quiet:.1f} | {during:.1f} | {during / quiet:.1f} | {worst:.0f} | {clock:.0f}, {hit:.0f}"
    return f"| {what} | {heard} | {row['asked']} | {times} | {row['grown']:+.0f} |\n"
