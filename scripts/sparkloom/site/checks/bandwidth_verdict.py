"""The measured pairs in words: which node or cable, and what to do about it; and all of it as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sparkloom.base.finding import Finding, Severity
from sparkloom.site.checks.bandwidth import Measure, Pair, Thresholds
from sparkloom.site.checks.report import as_dict

# What each trouble is called in the report and the JSON, and what to do. docs/fabric.md explains each.
VERDICTS = {
    "perftest": ("perftest is not installed", "apt-get install perftest on the node, then playbooks/verify.yml again"),
    "unread": ("not measured", "see what the node said; run again with -vvv"),
    "no-gid": (
        "no RoCE v2 GID",
        "playbooks/fabric.yml gives the function its address; one that a pod holds cannot be measured: fabric.check_vf",
    ),
    "silent": ("one end is silent", "the cable and the switch's port; playbooks/preflight.yml names a missing carrier"),
    "mtu": ("MTU 1500 on the switch", "jumbo frames on the switch's ports of both nodes, or fabric.mtu in fabric.yml"),
    "failed": ("RDMA fails", "rdma link and dmesg on both nodes; a firewall must let the rails' subnets pass"),
    "degraded": (
        "degraded CX-7: power-cycle both ends",
        "shut both nodes down, unplug their power for a minute, start them; a reboot alone keeps the state",
    ),
    "slow": (
        "slower than the rail should be",
        "lspci -vv on both nodes (LnkSta: 32GT/s, x4), the cable, the switch port's speed; power state of the GPU",
    ),
    "sum": (
        "the rails are slower together than apart",
        "the switch's port and its shaper: each QSFP port has to carry fabric.rail_gbit (fabric.yml)",
    ),
    "latency": ("slow to answer", "other traffic on the rail, energy saving of the switch's port (EEE) and of the CPU"),
    "one-rail": ("one rail only", "the other rail's row says why"),
}


def findings(measures: Sequence[Measure], judged: Sequence[Pair], limits: Thresholds) -> Iterator[Finding]:
    """One per trouble, rail and node: a node that has it with every other gets the blame once."""
    nodes = list(dict.fromkeys(m.client for m in measures))
    grouped: dict[tuple[str, str], list[Measure]] = {}
    for measure in measures:
        if measure.trouble:
            grouped.setdefault((measure.trouble, measure.rail), []).append(measure)
    for (trouble, rail), hits in grouped.items():
        yield from _of_rail(trouble, rail, hits, nodes, limits)
    yield from _of_pairs(judged, limits)


def _of_rail(trouble: str, rail: str, hits: list[Measure], nodes: list[str], limits: Thresholds) -> Iterator[Finding]:
    wanted = _expected(trouble, limits)
    blamed = _blamed({(m.client, m.server) for m in hits}, nodes)
    if blamed:
        worst = min(hits, key=lambda m: m.gbit or 0)
        yield _finding(blamed, f"rail {rail} to every other node", trouble, worst.detail, wanted)
        return
    for client in dict.fromkeys(m.client for m in hits):
        mine = [m for m in hits if m.client == client]
        peers = ", ".join(m.server for m in mine)
        yield _finding(client, f"rail {rail} to {peers}", trouble, mine[0].detail, wanted)


def _of_pairs(judged: Sequence[Pair], limits: Thresholds) -> Iterator[Finding]:
    for pair in judged:
        if pair.trouble == "sum":
            speed = f"{pair.sum_gbit:.4g} Gb/s on all rails at once"
            yield _finding(pair.client, f"rails to {pair.server}", "sum", speed, f"{limits.sum_gbit:g} Gb/s")
        elif pair.trouble == "one-rail":
            speed = f"{pair.sum_gbit:.4g} Gb/s, all on one rail"
            yield _finding(pair.client, f"rails to {pair.server}", "one-rail", speed, "every rail", "warning")


def _finding(node: str, check: str, trouble: str, detail: str, wanted: str, severity: Severity = "error") -> Finding:
    word, fix = VERDICTS[trouble]
    return Finding(node, check, f"{word} ({detail})", wanted, fix, severity)


def _blamed(hits: set[tuple[str, str]], nodes: list[str]) -> str | None:
    """The one node whose every pair has the trouble, and no other's; two nodes alone cannot tell."""
    if len(nodes) < 3:
        return None
    every = [(client, server) for client in nodes for server in nodes if client != server]
    guilty = [node for node in nodes if hits == {pair for pair in every if node in pair}]
    return guilty[0] if len(guilty) == 1 else None


def _expected(trouble: str, limits: Thresholds) -> str:
    if trouble in ("degraded", "slow", "mtu"):
        return f"{limits.rail_gbit:g} Gb/s"
    return f"{limits.latency_us:g} us" if trouble == "latency" else "RDMA in both directions"


def unread(answers: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Nodes that could not take part: without the programs, or without an answer."""
    for node, answer in answers.items():
        if answer.get("missing"):
            word, fix = VERDICTS["perftest"]
            message = f"{word}: no {' and no '.join(answer['missing'])}"
            yield Finding(node, "perftest", message, "both programs on every node", fix)
        elif answer.get("failed") or answer.get("unreachable"):
            message = " ".join(str(answer.get("msg", "no answer")).split())
            yield Finding(node, "perftest", message, "an answer", VERDICTS["unread"][1])


def without(runs: Mapping[str, list[dict[str, Any]]], left_out: Sequence[Finding]) -> dict[str, list[dict[str, Any]]]:
    """The runs between nodes that could be read: a node that is left out is left out at both ends."""
    apart = {finding.where for finding in left_out}
    return {host: [run for run in made if not apart & {run["client"], run["server"]}] for host, made in runs.items()}


def word(measures: Sequence[Measure], judged: Sequence[Pair], left_out: Sequence[Finding]) -> str:
    """The whole fabric in one verdict: the worst that was met."""
    met = {m.trouble for m in measures} | {pair.trouble for pair in judged}
    if left_out:
        met.add("perftest" if any("perftest is not" in finding.message for finding in left_out) else "unread")
    worst = next((VERDICTS[name][0] for name in VERDICTS if name in met - {"one-rail"}), None)
    if "one-rail" in met:
        return f"{VERDICTS['one-rail'][0]} ({worst})"
    return worst or ("as fast as it should be" if measures else VERDICTS["unread"][0])


def report(
    site: str,
    measures: Sequence[Measure],
    judged: Sequence[Pair],
    left_out: Sequence[Finding],
    limits: Thresholds,
    when: str,
) -> dict[str, Any]:
    """What build/<site>/fabric_check.json holds."""
    return {
        "site": site,
        "time": when,
        "verdict": word(measures, judged, left_out),
        "thresholds": asdict(limits),
        "pairs": [
            {
                "client": pair.client,
                "server": pair.server,
                "sum_gbit": round(pair.sum_gbit, 3),
                "verdict": VERDICTS[pair.trouble][0] if pair.trouble in VERDICTS else pair.trouble or "ok",
                "rails": {m.rail: {**_figures(m), "verdict": VERDICTS[m.trouble][0] if m.trouble else "ok"}
                          for m in pair.rails},
            }
            for pair in judged
        ],
        "not_measured": [as_dict(finding) for finding in left_out],
    }  # fmt: skip


def _figures(measure: Measure) -> dict[str, Any]:
    return {"gbit": measure.gbit, "latency_us": measure.latency_us, "mtu": measure.mtu, "said": measure.detail}


def summary(judged: Sequence[Pair]) -> str:
    """The slowest pair, for the line that says that all is well."""
    slowest = min(judged, key=lambda pair: pair.sum_gbit)
    rails = " + ".join(f"{m.gbit or 0:.4g}" for m in slowest.rails)
    latency = max((m.latency_us or 0 for pair in judged for m in pair.rails), default=0)
    return (
        f"{len(judged)} directions hold; the slowest is {slowest.client} to {slowest.server} with "
        f"{slowest.sum_gbit:.4g} Gb/s ({rails}), the longest latency {latency:.3g} us"
    )
