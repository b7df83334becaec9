"""What the ranks said, judged: which way NCCL took, and whether that way is as fast as it should be.

GPU load says nothing: it is 100 % over sockets too. The bandwidth of large all-reduces tells the ways apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from sparkloom.base import json_text
from sparkloom.inputs.platform import GB10
from sparkloom.launch import fabric
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.site.checks import bandwidth

# GB/s of bus bandwidth of collectives that were measured on Sparks that work, the least of each; a tenth below it is
# slow. One rail of two, or a second half at PCIe x2, cannot exceed 13.6: one half's wire.
MARGIN = 0.9
PAIR = 20.1  # two Sparks, both halves, 161 Gb/s (tonyd2wild PR 35, 2026); 23.7 by others, 18.9 to 21.0 at MTU 1500
ONE_HALF = GB10.rail_gb_s  # four Sparks, one half each
SEVERAL = min(PAIR, 2 * ONE_HALF)  # three and more on both halves: nobody published it; as two of the four's one half
SCRIPT = 21.9  # where NVIDIA's own script passes a group: 175 Gb/s
SOCKETS = 4.0  # what sockets reach at best: below it, they are the likely reason whatever the log says
RING = 10.0  # three in a ring: where NVIDIA's script passes them (2026-03); 21 by nccl-tests (eugr's issue 252)
# Of what one TCP stream carries over the rail, this much must arrive as gloo's bus bandwidth: its ring sends and takes
# at once, by one processor's hands, and adds the numbers up.
GLOO = 0.25
BY_RAILS = 0.9  # of the bytes that left a pod; its beats, its probes and DNS go by the cluster's network
NCCLS = "NCCL error in:"  # of torch, when it is the messenger
SMALL = 128 << 10  # what a decode step reduces


def least(rails: int, rail_gbit: float, nodes: int, *, ring: bool = False) -> float:
    """What so many nodes must reach: what was measured less a margin, and on a narrower wire its share of that."""
    together = min(rail_gbit, rails * bandwidth.HALF_GBIT)
    if ring:
        return round(RING * together / (2 * bandwidth.HALF_GBIT), 1)
    if together > bandwidth.HALF_GBIT:
        whole = PAIR if nodes == 2 else SEVERAL
        return round(MARGIN * whole * together / (2 * bandwidth.HALF_GBIT), 1)
    return round(MARGIN * ONE_HALF * together / bandwidth.HALF_GBIT, 2)


def judge(
    logs: Mapping[str, str], *, rails: int, nodes: int, rail_gbit: float = 200, ring: bool = False
) -> dict[str, Any]:
    """`logs`: rank -> what it printed. The verdict is `ok`, `slow`, `wrong-transport` or `failed`, with a reason."""
    report = nccl_log.read_text("\n".join(logs.values()), rails=rails, nodes=nodes)
    result, errors = None, []
    for rank, text in logs.items():
        for line in text.splitlines():
            told = _json(line)
            result = told.get("allreduce") or result
            if "error" in told:
                errors.append(f"rank {rank}: {told['error']}")
    mode = ("two rails" if rails > 1 else "one rail") + (" of a ring" if ring else "")
    wanted = least(rails, rail_gbit, nodes, ring=ring)
    judged: dict[str, Any] = {
        "mode": mode,
        "least_busbw_gb_s": wanted,
        "transport": {"verdict": report.verdict, "why": report.why},
        "nccl": (result or {}).get("nccl"),
        "sizes": (result or {}).get("sizes", []),
    }
    if not result:
        return {"verdict": "failed", "why": _failed(logs, errors, report), **judged}
    best = max(row["busbw_gb_s"] for row in result["sizes"])
    small = [row["us"] for row in result["sizes"] if row["bytes"] <= SMALL]
    judged |= {"busbw_gb_s": best, "latency_us": min(small) if small else None}
    if result.get("backend") == "gloo":
        return {**judged, **_gloo(result, best, {fabric.pod_interface(number) for number in range(rails)})}
    return {**_verdict(report.verdict, report.why, best, wanted, mode), **judged}


def _failed(logs: Mapping[str, str], errors: list[str], report: nccl_log.Report) -> str:
    """Where NCCL alone failed, what its log gives as the cause and its cure: its error tells neither."""
    if not errors:
        return f"no rank printed a result; {_last(logs)}; NCCL: {report.why}"
    if report.ranks and report.verdict == "failed" and all(NCCLS in error for error in errors):
        return report.why
    return "; ".join(errors)


def _last(logs: Mapping[str, str]) -> str:
    """Where nothing we know was said, the end of what was."""
    ends = {rank: text.strip().splitlines()[-1] for rank, text in logs.items() if text.strip()}
    last_words = [f"rank {rank} said last: {line[:200]}" for rank, line in ends.items()]
    return last_words[0] if last_words else "no rank left a log"


def _verdict(transport: str, why: str, best: float, wanted: float, mode: str) -> dict[str, str]:
    if transport != "roce":
        return {"verdict": "wrong-transport", "why": f"NCCL took {transport} instead of {mode}: {why}; {best:.1f} GB/s"}
    if best >= wanted:
        below = wanted > ONE_HALF and best < SCRIPT
        more = f"; NVIDIA's own script asks for {SCRIPT}: preflight tells each half's PCIe width" if below else ""
        return {"verdict": "ok", "why": f"{best:.1f} GB/s over {mode}; {wanted:g} were expected{more}"}
    one_rail = wanted > ONE_HALF and best >= MARGIN * ONE_HALF
    hint = ", as over sockets" if best < SOCKETS else ", as over one rail" if one_rail else ""
    cure = "playbooks/verify.yml measures every pair of nodes and names the slow end"
    return {"verdict": "slow", "why": f"{best:.1f} GB/s over {mode}{hint}; {wanted:g} were expected; {cure}"}


def _gloo(result: Mapping[str, Any], best: float, over: Set[str]) -> dict[str, Any]:
    """By the bytes that left each pod, since gloo's log tells no way; and by what TCP carries there, not by RDMA."""
    tcp = float(result["tcp_gb_s"])
    wanted = round(GLOO * tcp, 3)
    shares = [_share(moved, over) for moved in result["sent"]]
    facts = {"mode": "TCP over the rails", "nccl": None, "tcp_gb_s": tcp, "least_busbw_gb_s": wanted}
    if (least_share := min(shares)) < BY_RAILS:
        rank, moved = shares.index(least_share), result["sent"][shares.index(least_share)]
        other = max(moved.keys() - over, key=lambda name: moved[name], default="?")
        why = (
            f"gloo took {other}: {least_share:.0%} of what rank {rank} sent left by a rail; GLOO_SOCKET_IFNAME decides"
        )
        return {"verdict": "wrong-transport", "why": why, **facts, "transport": {"verdict": "socket", "why": why}}
    way = {"verdict": "rails", "why": f"{least_share:.0%} and more of what each rank sent left by a rail"}
    words = f"{best:.2f} GB/s by gloo over the rails, where one TCP stream carries {tcp:.2f}; {wanted:g} were expected"
    verdict = "ok" if best >= wanted else "slow"
    why = words if best >= wanted else f"{words}; the nodes' processors are busy, or frames are lost"
    return {"verdict": verdict, "why": why, **facts, "transport": way}


def _share(moved: Mapping[str, int], over: Set[str]) -> float:
    whole = sum(moved.values())
    return sum(count for name, count in moved.items() if name in over) / whole if whole else 0.0


def _json(line: str) -> dict[str, Any]:
    """A line of ours, also behind a prefix that a log collector put in front."""
    at = min((place for mark in ('{"allreduce"', '{"error"') if (place := line.find(mark)) >= 0), default=-1)
    return json_text.mapping(line[at:]) if at >= 0 else {}
