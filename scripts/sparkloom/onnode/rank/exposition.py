"""The two pages for a Prometheus: what the supervisor and the RDMA devices know, and the engine's own counters.

The second needs no key here. An engine that somebody took over may write into its counters what it likes. So only names
with the engine's own prefix pass, and none that brings a label of ours: it cannot speak of another group, a host or a
person.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.onnode import prometheus
from sparkloom.onnode.prometheus import Family
from sparkloom.onnode.prometheus import Labelled as Sample
from sparkloom.onnode.rank import answers, causes, procs
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog, verdict

PATH = "/metrics"
CONNECTIONS = "sparkloom_rank_connections"  # the waker reads it
# What a rank is at, in the order of a good start; then what holds it up. Its own words are more, and go on changing.
PHASES = (
    "checking", "waiting", "loading", "compiling", "ready", "quiet", "draining", "stopping", "missing", "refused",
    "down",
)  # fmt: skip
SAID = {
    "peers": "waiting", "lenders": "waiting", "engine": "loading", "warning": "loading", "again": "stopping",
    "serving": "ready", "quiet": "quiet", "draining": "draining", "leaving": "draining", "gone": "stopping",
    "failed": "stopping", "stopping": "stopping", "stopped": "stopping", "missing": "missing", "refused": "refused",
    "down": "down",
}  # fmt: skip
TRANSPORTS = ("roce", "roce-partial", "socket", "local", "failed")
WORD = 4  # bytes: what the ports' data counters count
ERRORS = ("local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err", "roce_slow_restart")


class State(NamedTuple):
    plan: GroupPlan
    rank: int
    status: Mapping[str, Any]
    now: float


def phase(status: Mapping[str, Any]) -> str:
    said = SAID.get(str(status["phase"]), "checking")
    if status["serving"] and said in ("loading", "checking"):  # a warning of a rank that serves
        return "ready"
    return "compiling" if said == "loading" and status["compiling"] else said


def labels(plan: GroupPlan, rank: int) -> dict[str, str]:
    """The group as the pods' label sparkloom/profile has it."""
    return {"group": plan.group or plan.profile, "rank": str(rank), "node": plan.member(rank).node}


def page(plan: GroupPlan, rank: int, status: Mapping[str, Any], now: float) -> str:
    state, own = State(plan, rank, status, now), labels(plan, rank)
    return "".join(one.text(({**own, **more}, value) for more, value in one.read(state)) for one in FAMILIES)


def _phases(state: State) -> Iterator[Sample]:
    now = phase(state.status)
    yield from (({"phase": name}, float(name == now)) for name in PHASES)


def _ready(state: State) -> Iterator[Sample]:
    yield {}, float(verdict("ready", state.status, state.now)[0])


def _written(key: str, *, age: bool = False) -> Callable[[State], Iterator[Sample]]:
    """A number as the supervisor wrote it down, or the age of a moment; nothing while there is none."""

    def read(state: State) -> Iterator[Sample]:
        if (value := state.status.get(key)) is not None:
            yield {}, max(0.0, state.now - value) if age else float(value)

    return read


_age = partial(_written, age=True)


def _stops(state: State) -> Iterator[Sample]:
    """All causes from the beginning: a counter that appears with its first failure never grew."""
    counted = dict(state.status["stops"])
    yield from (({"cause": cause}, float(counted.get(cause, 0))) for cause in causes.STOPS)


def _cause(state: State) -> Iterator[Sample]:
    if state.status["cause"]:
        yield {"phase": phase(state.status), "rule": causes.rule(state.status["cause"], state.plan.patterns)}, 1.0


def _budget(state: State) -> Iterator[Sample]:
    yield {}, float(state.plan.limits.restarts)


def _transport(state: State) -> Iterator[Sample]:
    """One of these from the first word of NCCL on; nothing where NCCL has nothing to do."""
    if took := state.status["transport"]:
        word = took.removeprefix("NCCL transport ").partition(":")[0]
        yield from (({"transport": name}, float(name == word)) for name in TRANSPORTS)


def _rails(state: State) -> Iterator[Sample]:
    """Looked at while the engine runs, and ahead of each start: a start that waits for a rail says `refused`."""
    if state.status["engine"]:
        for rail in state.plan.member(state.rank).rails:
            broken = any(fault.startswith(f"rail {rail.name}:") for fault in state.status["rails"])
            yield {"rail": rail.name, "device": rail.hca}, float(not broken)


def _weights(state: State) -> Iterator[Sample]:
    """Models of it, as the last look found them; ahead of each start a changed one is `refused`."""
    if state.plan.store:
        yield {}, float(len(state.status["weights"]))


def _port(label: str, unit: int, **files: str) -> Callable[[State], Iterator[Sample]]:
    """Of the functions that this rank has: what other groups and the host send is not in them."""

    def read(state: State) -> Iterator[Sample]:
        for rail in state.plan.member(state.rank).rails if state.plan.rdma else ():
            port = Path(state.plan.sys) / "infiniband" / rail.hca / "ports/1"
            for name, file in files.items():
                # a device without this counter, or "N/A (no PMA)"
                with contextlib.suppress(OSError, ValueError):
                    count = float((port / file).read_text()) * unit
                    yield {"rail": rail.name, "device": rail.hca, label: name}, count

    return read


_bytes = _port("direction", WORD, sent="counters/port_xmit_data", received="counters/port_rcv_data")
_errors = _port("error", 1, **{name: f"hw_counters/{name}" for name in ERRORS})


def _connections(state: State) -> Iterator[Sample]:
    """Of rank 0, which has the engine's API, while its engine runs: the kernel's tables take milliseconds to read."""
    if state.rank == 0 and state.status["engine"]:
        yield {}, float(procs.clients(state.plan.port))


def _info(state: State) -> Iterator[Sample]:
    plan = state.plan
    yield {"profile": plan.profile, "engine": plan.engine, "release": plan.release, "image": plan.image}, 1.0


FAMILIES = (
    Family("sparkloom_rank_info", "gauge", "What this rank serves; always 1.", _info),
    Family("sparkloom_rank_phase", "gauge", "1 for what the rank is at, 0 for the others.", _phases),
    Family("sparkloom_rank_ready", "gauge", "1 while the whole group gives tokens.", _ready),
    Family("sparkloom_rank_epoch", "counter", "Starts of the whole group so far.", _written("epoch")),
    Family("sparkloom_rank_stops_total", "counter", "Epochs that ended while this supervisor ran, by cause.", _stops),
    Family("sparkloom_rank_cause", "gauge", "1 while a cause is named why nothing is served.", _cause),
    Family("sparkloom_rank_restart_budget", "gauge", "Restarts without a token before the group stays down.", _budget),
    Family("sparkloom_rank_restart_budget_spent", "gauge", "Failures that count against it now.", _written("spent")),
    Family("sparkloom_rank_start_seconds", "gauge", "The last start, from the engine to a token.", _written("took")),
    Family("sparkloom_rank_transport", "gauge", "1 for the way that NCCL took on this rank.", _transport),
    Family("sparkloom_rank_rail_up", "gauge", "1 while a rail is as planned in this pod.", _rails),
    Family("sparkloom_rank_rdma_bytes_total", "counter", "Sent and received by this rank's RDMA devices.", _bytes),
    Family("sparkloom_rank_rdma_errors_total", "counter", "Errors that these devices counted.", _errors),
    Family("sparkloom_rank_weights_changed", "gauge", "Models whose files are not as they were verified.", _weights),
    Family("sparkloom_rank_requests", "gauge", "Requests that run or wait, as rank 0 last saw.", _written("requests")),
    Family(CONNECTIONS, "gauge", "Open connections of clients to rank 0's engine.", _connections),
    Family("sparkloom_rank_progress_age_seconds", "gauge", "Since rank 0's engine last moved.", _age("moved")),
    Family("sparkloom_rank_beat_age_seconds", "gauge", "Since the supervisor was last heard.", _age("beat")),
)
NAMES = tuple(family.name for family in FAMILIES)


ENGINE = "/metrics/engine"
OURS = re.compile(r"""[{,]\s*(?:group|rank|node)\s*=""")
LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?=[^}])|\{\}|(?=[ \t]))")
NONE = "# this engine has no counters in this form\n"
PAGES: dict[str, Callable[[StatusLog], str | None]] = {
    PATH: lambda log: page(log.plan, log.rank, dict(log.status), time.time()),
    ENGINE: lambda log: engine(log.plan, log.rank),
}


def prefix(plan: GroupPlan) -> str:
    """What its names begin with, as `vllm:`; empty where it has no page of this form.

    TensorRT-LLM's is JSON, and who reads it takes what it says from the supervisor.
    """
    return plan.requests[0].partition(":")[0] + ":" if plan.metrics and plan.requests else ""


def engine(plan: GroupPlan, rank: int) -> str | None:
    """None when the engine gives none now."""
    if rank or not (begins := prefix(plan)):
        return NONE
    told = answers.page(plan)
    return None if told is None else labelled(told, begins, prometheus.labels(labels(plan, rank)))


def labelled(text: str, begins: str, own: str) -> str:
    kept = []
    for line in text.split("\n"):
        if line.startswith(begins):
            found = LINE.match(line)
            if found and not OURS.search(line):
                more = "{" + own + ("," if found[2] == "{" else "}")
                kept.append(found[1] + more + line[found.end() :].rstrip("\r"))
        elif line.startswith((f"# HELP {begins}", f"# TYPE {begins}")):
            kept.append(line.rstrip("\r"))
    return "".join(f"{line}\n" for line in kept)
