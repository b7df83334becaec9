"""What every engine must do whose group we serve, asked in the same words of an engine itself and of its stand-in.

Where the two answer differently the stand-in is wrong: whoever mends it begins here.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparkloom.inputs import profile
from sparkloom.launch import engines, ports
from tests.rack.real import PAGE, REFUSED, Served


def streams_what_its_usage_counts(served: Served) -> None:
    told = served.asked()
    assert told["end"] == "whole" and told["usage"]["completion_tokens"] == 24, told


def has_the_counters_that_we_read(served: Served) -> None:
    known = set(re.findall(r"^([a-z][\w:]*)", served.inside(0, PAGE % (served.port, "/metrics")), re.M))
    requests, moves = engines.counters(profile.load(served.name).profile.engine.name)
    assert {*requests, *moves} <= known, {*requests, *moves} - known


def answers_nobody_without_its_key(served: Served) -> None:
    assert served.inside(0, REFUSED % served.port).strip() == "401"


def listens_where_the_table_says_and_at_ports_of_chance(served: Served) -> None:
    told = profile.load(served.name).profile.engine
    said = engines.get(told.name).ports({}, {}, told.release, len(served.nodes))
    fixed = {port.number for port in [*said, *ports.OURS]}
    low = int(served.inside(0, "print(open('/proc/sys/net/ipv4/ip_local_port_range').read())").split()[0])
    for rank in range(len(served.nodes)):
        open_ports = served.listening(rank)
        assert {number for number in open_ports if number < low} <= fixed, open_ports
        if rank == 0:
            assert {served.port, ports.RENDEZVOUS} <= open_ports


def answers_a_full_queue(served: Served, words: int) -> None:
    """More ask, with long prompts, than run at once; nobody takes the silence for death."""
    epoch = served.group.epoch()
    answers = served.clients_at_once(clients=12, tokens=16, words=words)
    assert [told["end"] for told in answers] == ["whole"] * 12, answers
    assert served.group.epoch() == epoch and served.group.serves(epoch - 1)


def forgets_a_client_that_left(served: Served, gauge: str) -> None:
    assert served.asked(tokens=3000, leave=3)["end"] == "left"
    until = time.monotonic() + 30
    while served.metric(gauge) > 0:
        assert time.monotonic() < until, "it still computes for somebody who left"
        time.sleep(1)


def comes_back_from_a_kill(served: Served, rank: int) -> dict[str, Any]:
    """The stream that was cut is not whole, and ends soon; the log of that rank names the failure."""
    epoch = served.group.epoch()
    with served.somebody_reads() as told:
        served.signal(rank, signal.SIGKILL)
    assert told["end"] != "whole", told
    print(f"back after {served.wait_back(epoch):.0f} s")
    assert served.asked(patience=300)["end"] == "whole"
    assert "failed: " in served.log(rank), served.log(rank)[-3000:]
    return told


def is_found_when_it_freezes(served: Served, rank: int, load: str) -> None:
    epoch = served.group.epoch()
    if load == "retried":  # each is a request that is let in, and never answered
        with clients_that_retry(served):
            served.signal(rank, signal.SIGSTOP)
            print(f"out of service after {served.wait_found(epoch, OUT_OF_SERVICE):.0f} s")
    elif load == "idle":  # nobody asks, and the ranks' own question gets no answer
        served.signal(rank, signal.SIGSTOP)
        print(f"found after {served.wait_found(epoch, 180):.0f} s")
    else:
        with served.somebody_reads(waits=240):
            served.signal(rank, signal.SIGSTOP)
    print(f"back after {served.wait_back(epoch):.0f} s more")


@contextmanager
def clients_that_retry(served: Served, count: int = 3) -> Iterator[None]:
    """As SDKs do: after five seconds without an answer they ask again."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            with suppress(Exception):  # of a pod that is gone, or says nothing
                served.asked(tokens=8, patience=5)

    asking = [threading.Thread(target=ask) for _ in range(count)]
    for one in asking:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in asking:
            one.join()


def goes_within_its_grace(served: Served) -> None:
    """And gives its memory back: what nobody uses any more is available to the next model."""
    held, before = served.holds(), available()
    begun = time.monotonic()
    done = served.stop()
    assert done.returncode == 0, done.stdout[-3000:]
    assert not served.group.pods() and time.monotonic() - begun < 90
    until = time.monotonic() + 30
    while available() - before < 0.7 * held - OTHERS:
        assert time.monotonic() < until, f"{held} kB were held, {available() - before} kB are back"
        time.sleep(1)


OUT_OF_SERVICE = 110.0  # seconds until a frozen rank's group is not Ready, whoever asks meanwhile
# What else on this machine may take meanwhile, in kB: more than a stand-in holds, a tenth of an engine.
OTHERS = 300_000


def available() -> int:
    """MemAvailable of this machine, which is every node's, in kB."""
    rows = Path("/proc/meminfo").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable:"))
