"""The measured pairs in words: which node or cable, and what to do about it; and all of it as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Finding, Severity
from sparkloom.site.checks.bandwidth import Measure, Pair, Thresholds
from sparkloom.site.checks.report import as_dict

VERDICTS = document.own(Path(__file__).with_name("bandwidth_verdicts.yml").read_text())  # by trouble


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
    told = VERDICTS[trouble]
    return Finding(node, check, f"{told['word']} ({detail})", wanted, told["fix"], severity)


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
            told = VERDICTS["perftest"]
            message = f"{told['word']}: no {' and no '.join(answer['missing'])}"
            yield Finding(node, "perftest", message, "both programs on every node", told["fix"])
        elif answer.get("failed") or answer.get("unreachable"):
            message = " ".join(str(answer.get("msg", "no answer")).split())
            yield Finding(node, "perftest", message, "an answer", VERDICTS["unread"]["fix"])


def without(runs: Mapping[str, list[dict[str, Any]]], left_out: Sequence[Finding]) -> dict[str, list[dict[str, Any]]]:
    """The runs between nodes that could be read: a node that is left out is left out at both ends."""
    apart = {finding.where for finding in left_out}
    return {host: [run for run in made if not apart & {run["client"], run["server"]}] for host, made in runs.items()}


def word(measures: Sequence[Measure], judged: Sequence[Pair], left_out: Sequence[Finding]) -> str:
    """The whole fabric in one verdict: the worst that was met."""
    met = {m.trouble for m in measures} | {pair.trouble for pair in judged}
    if left_out:
        met.add("perftest" if any("perftest is not" in finding.message for finding in left_out) else "unread")
    worst = next((VERDICTS[name]["word"] for name in VERDICTS if name in met - {"one-rail"}), None)
    if "one-rail" in met:
        return f"{VERDICTS['one-rail']['word']} ({worst})"
    return worst or ("as fast as it should be" if measures else VERDICTS["unread"]["word"])


def report(
    site: str,
    measures: Sequence[Measure],
    judged: Sequence[Pair],
    left_out: Sequence[Finding],
    limits: Thresholds,
    when: str,
    boots: Mapping[str, str],
) -> dict[str, Any]:
    """What build/<site>/fabric_check.json holds."""
    return {
        "site": site,
        "time": when,
        "boots": dict(boots),  # of each node that was measured
        "verdict": word(measures, judged, left_out),
        "thresholds": asdict(limits),
        "pairs": [
            {
                "client": pair.client,
                "server": pair.server,
                "sum_gbit": round(pair.sum_gbit, 3),
                "verdict": VERDICTS[pair.trouble]["word"] if pair.trouble in VERDICTS else pair.trouble or "ok",
                "rails": {
                    m.rail: {**_figures(m), "verdict": VERDICTS[m.trouble]["word"] if m.trouble else "ok"}
                    for m in pair.rails
                },
            }
            for pair in judged
        ],
        "not_measured": [as_dict(finding) for finding in left_out],
    }


def _figures(measure: Measure) -> dict[str, Any]:
    return {"gbit": measure.gbit, "latency_us": measure.latency_us, "mtu": measure.mtu, "said": measure.detail}


def summary(judged: Sequence[Pair]) -> str:
    """The slowest pair, for the line that says that all is well."""
    slowest = min(judged, key=lambda pair: pair.sum_gbit)
    rails = " + ".join(f"{m.gbit or 0:.4g}" for m in slowest.rails)
    latency = max((m.latency_us or 0 for pair in judged for m in pair.rails), default=0)
    least = f"{slowest.client} to {slowest.server} with {slowest.sum_gbit:.4g} Gb/s ({rails})"
    return f"{len(judged)} directions hold; the slowest is {least}, the longest latency {latency:.3g} us"
