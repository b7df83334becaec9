"""How fast is RDMA between each two nodes, on each rail, in each direction? What to run, and what the figures mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.cluster import Cluster, Fabric
from sparkloom.launch.fabric import Endpoint, Plan
from sparkloom.site import perftest

FIRST_PORT = 18515  # perftest's own
MOST_BYTES = 64 << 20  # registered memory of one run: unified memory that runs out takes the whole node with it


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the fabric has to show; `sum_gbit` is for all rails of a pair at the same time.

    Latency: 1.5 us were measured (eugr's notes); 10 is far from any healthy path through one switch.
    """

    rail_gbit: float
    sum_gbit: float
    degraded_gbit: float
    latency_us: float = 10.0


# Of what two rails can carry at once: 175 of 200 Gb/s is where NVIDIA's own script for connected Sparks says pass
# (21.875 GB/s); 189.85 was measured with perftest by NVIDIA's performance guide, 218.4 by users. A link that is
# slower than its halves, 100G, is the narrow place: the same share of it.
PASS = 0.875
HALF_GBIT = 100.0  # one half of a port, whatever its link: PCIe carries 109 to 112 (LLMKube #1423, eugr's notes)
# Two rails at once share the link, and one may get less of it than the other.
SHARE = 0.8
# A ConnectX-7 that started badly shows about 13 Gb/s on a clean link, 8 to 25 by NVIDIA's own check (PR 108 of its
# playbooks). Never more than half of what a rail must reach: that is slow, not stuck.
STUCK_GBIT, STUCK_LEAST_GBIT = 25.0, 8.0


def expected(rails: int, link_gbit: float) -> Thresholds:
    """What rails on a port with a link of that speed have to show."""
    together = min(link_gbit, rails * HALF_GBIT)
    each = (PASS if rails == 1 else SHARE) * together / rails
    return Thresholds(rail_gbit=each, sum_gbit=PASS * together, degraded_gbit=min(STUCK_GBIT, each / 2))


def thresholds(fabric: Fabric, own: Mapping[str, Any]) -> Thresholds:
    """What follows from the number and the speed of the rails, with what a site says itself."""
    mode = expected(len(fabric.rails), fabric.rail_gbit)
    known = asdict(mode)
    for name in own:
        if name not in known:
            message = f"'{name}' is no threshold{did_you_mean(name, known)}; one of: {', '.join(known)}"
            raise InputError.single("fabric_check_thresholds", message, rule="unknown-key")
    return replace(mode, **{name: float(value) for name, value in own.items()})


# --- what to run ----------------------------------------------------------------------------------------------


def rounds(nodes: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Every ordered pair once; in one round no node is in two pairs, so that no pair disturbs another."""
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    turns = []
    for _ in range(len(seats) - 1):
        halves = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        pairs = [(left, right) for left, right in halves if left is not None and right is not None]
        turns += [pairs, [(right, left) for left, right in pairs]]
        seats.insert(1, seats.pop())
    return turns


def tests(
    cluster: Cluster, plan: Plan, nodes: Sequence[str], *, size: int, iterations: int, queue_pairs: int
) -> dict[str, Any]:
    """`serve`: what each node listens for; `rounds`: what each client measures, one round after the other."""
    if 2 * size * queue_pairs > MOST_BYTES:
        message = f"{size} bytes on {queue_pairs} queue pairs register {2 * size * queue_pairs >> 20} MiB per run"
        raise InputError.single("fabric_check_bytes", f"{message}; at most {MOST_BYTES >> 20}", rule="fabric-check")
    ends = {(e.node, e.rail): e for e in plan.at_host()}
    order = [node for node in plan.nodes if node in nodes]
    shape = {"bytes": size, "iterations": iterations, "queue_pairs": queue_pairs}

    def between(client: str, server: str) -> list[dict[str, Any]]:
        first = FIRST_PORT + order.index(client) * 2 * len(plan.rails)
        return [
            {**_ends(ends[client, rail], ends[server, rail]), **shape, "port": first + 2 * number}
            for number, rail in enumerate(plan.rails)
            if (client, rail) in ends and (server, rail) in ends
        ]

    turns = [{client: between(client, server) for client, server in pairs} for pairs in rounds(order)]
    listen: dict[str, list[dict[str, Any]]] = {node: [] for node in order}
    for turn in turns:
        for runs in turn.values():
            for run in runs:
                listen[run["server"]].append({**run, "address": run["peer"]})
    return {"serve": listen, "rounds": [turn for turn in turns if turn]}


def _ends(mine: Endpoint, peer: Endpoint) -> dict[str, Any]:
    return {
        "rail": mine.rail,
        "client": mine.node,
        "server": peer.node,
        "interface": mine.interface,
        "pf": mine.pf,
        "address": mine.address,
        "peer": peer.address,
        "payload": mine.mtu - 28,
    }


# --- what it showed -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """One rail from a client to a server."""

    client: str
    server: str
    rail: str
    gbit: float | None
    latency_us: float | None
    mtu: int
    trouble: str = ""  # a word of VERDICTS, or nothing
    detail: str = ""


def measures(results: Mapping[str, Sequence[Mapping[str, Any]]], limits: Thresholds) -> list[Measure]:
    return [_measure(run, limits) for runs in results.values() for run in runs]


def _measure(run: Mapping[str, Any], limits: Thresholds) -> Measure:
    bandwidth, latency = (perftest.read(run.get(tool, "")) for tool in (perftest.BANDWIDTH, perftest.LATENCY))
    measure = Measure(
        client=run["client"],
        server=run["server"],
        rail=run["rail"],
        gbit=bandwidth.gbit if bandwidth else None,
        latency_us=latency.microseconds if latency else None,
        mtu=bandwidth.mtu if bandwidth else 0,
    )
    trouble, detail = _trouble(run, measure, limits)
    return replace(measure, trouble=trouble, detail=detail)


def _trouble(run: Mapping[str, Any], measure: Measure, limits: Thresholds) -> tuple[str, str]:
    if not run["has_gid"]:
        return "no-gid", f"no RDMA device with a RoCE v2 GID of {run['address']}"
    if not run["ping"]["ok"]:
        return ("mtu", "full frames are lost, small ones pass") if run["ping"]["small_ok"] else ("silent", "no answer")
    if measure.gbit is None:
        return "failed", perftest.why(run.get(perftest.BANDWIDTH, ""))
    speed = f"{measure.gbit:.4g} Gb/s"
    if errors := run.get("errors"):
        speed += f", {errors} errors counted on its port meanwhile"
    elif STUCK_LEAST_GBIT <= measure.gbit < limits.degraded_gbit:
        return "degraded", speed
    if measure.gbit < limits.rail_gbit:
        return ("mtu" if measure.mtu < 4096 else "slow"), f"{speed} with an RDMA MTU of {measure.mtu}"
    if measure.latency_us is not None and measure.latency_us > limits.latency_us:
        return "latency", f"{measure.latency_us:.4g} us"
    return "", ""


@dataclass(frozen=True, slots=True)
class Pair:
    client: str
    server: str
    rails: tuple[Measure, ...]
    sum_gbit: float
    trouble: str


def pairs(measures: Sequence[Measure], limits: Thresholds) -> Iterator[Pair]:
    for client, server in dict.fromkeys((m.client, m.server) for m in measures):
        rails = tuple(m for m in measures if (m.client, m.server) == (client, server))
        total = sum(m.gbit or 0 for m in rails)
        troubles = {m.trouble for m in rails} - {""}
        trouble = next(iter(troubles)) if len(troubles) == 1 else "several" if troubles else ""
        if len(rails) > 1 and 0 < sum(m.gbit is None for m in rails) < len(rails):
            trouble = "one-rail"
        elif not trouble and total < limits.sum_gbit:
            trouble = "sum"
        yield Pair(client, server, rails, total, trouble)
