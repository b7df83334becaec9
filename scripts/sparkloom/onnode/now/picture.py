"""What a site is now, as one piece of plain data: what `sparkloom status --watch --json` prints and the page draws.

Nothing is asked here: facts of the site and one look at it come in. Nothing secret is in either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkloom.onnode.now import bars, ground, pods
from sparkloom.onnode.now.groups import WORDS, Facts, Look, Observed, Shown, healthy, observe, state

FORMAT = 1
FIGURES = ("running", "queued", "cache_usage", "accept_length", "tokens_per_second", "held")  # of engines and router
UNKNOWN = "what the site should be is not known here; playbooks/gateway.yml writes it"
BLIND = Look()  # what is seen of a cluster that never answered


def picture(facts: Facts, look: Look) -> Shown:
    names = {node["kubernetes_node"]: node["name"] for node in facts.get("nodes", ())}
    groups = [group(one, look, names) for one in observe(facts, look)]
    problem = [facts["problem"]] if facts.get("problem") else [] if facts else [UNKNOWN]
    return {
        "format": FORMAT,
        "site": facts.get("site"),
        "at": round(look.at, 1),
        "problems": [*problem, *ground.ill(look, names)],
        "serving": bool(groups) and all(healthy(one) for one in groups if one["listed"] or one["ranks"]),
        "tokens_per_second": _sum(one["tokens_per_second"] for one in groups),
        "running": _sum(one["running"] for one in groups),
        "queued": _sum(one[where] for one in groups for where in ("queued", "held")),
        "groups": groups,
        "nodes": [_node(node, groups, look) for node in facts.get("nodes", ())],
        "rails": [_rail(rail, facts, groups) for rail in facts.get("rails", ())],
        "fabric": fabric(facts.get("fabric")),
    }


def _sum(values: Any) -> float | None:
    """Of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return round(sum(known), 1) if known else None


# --- groups -------------------------------------------------------------------------------------------------------


def group(one: Observed, look: Look, names: Mapping[str, str]) -> Shown:
    """`names`: what else its ranks' nodes are to be called."""
    rows = _ranks(one, look, names)
    now = state(one, rows)
    rests = now in ("asleep", "stopped")
    hashes = {one.record.get("config_hash")} if rests else {rank["config_hash"] for rank in rows if rank["pod"]}
    proved = bool(one.served) and hashes == {one.served.get("config_hash")}
    told = one.plan if not one.record or one.record.get("profile") == one.plan.get("profile") else {}
    head = next((rank["pod"] for rank in rows if rank["rank"] == "0"), "")
    counted = look.gauges.get(head, {}) if now == "serves" else {}
    rate = look.rates.get(head) if counted else None
    faults = [f"rank {rank['rank']} on {rank['node']}: {text}" for rank in rows for text in rails(rank)]
    return {
        "name": one.name,
        "profile": one.profile,
        "names": one.names,
        "alias": one.alias or None,
        "model": one.record.get("model") or told.get("model"),
        **{key: one.record.get(key) or told.get(key) for key in ("engine", "release", "image", "revision")},
        "listed": one.listed,
        "nodes": one.nodes,
        "state": now,
        "word": f"{WORDS[now]} by {one.stopped}" if one.stopped else WORDS[now],
        "serving": now == "serves",
        "doing": _doing(rows) if now in ("starts", "wakes", "incomplete") else "",
        "on_demand": _on_demand(one, now, rows, look) if one.on_demand else None,
        "cause": "" if rests else _cause([rank for rank in rows if rank["pod"] or now != "wakes"], faults),
        "since": pods.since(one.pods) or None if now == "serves" else None,
        "config_hash": next(iter(hashes)) if len(hashes) == 1 else None,
        "proved": proved,
        "digest": one.served.get("digest") if proved else None,
        "transport": one.served.get("transport") if proved and not faults else None,
        "ready_seconds": one.served.get("ready_seconds") if proved else None,
        "rails": faults,
        "restarts": sum(rank["restarts"] for rank in rows),
        "epochs": max((int((rank["supervisor"] or {}).get("epoch") or 0) for rank in rows), default=0),
        "ended": _ended(one.pods, look),
        "failed": one.served.get("failed"),
        "fraction": one.record.get("fraction") or told.get("fraction"),
        "takes_gib": told.get("takes_gib"),
        "memory": told.get("memory"),
        "evidence": told.get("evidence"),
        "bench": told.get("bench"),
        "tokens_per_second": None if rate is None else round(rate, 1),
        **{key: counted.get(key) for key in FIGURES[:4]},
        "held": _held(one, now, look),
        "ranks": rows,
    }


def _ranks(one: Observed, look: Look, names: Mapping[str, str]) -> list[Shown]:
    """Every rank that was planned or is there; nodes by the names that the inventory gives them."""
    states = [pods.state(pod) for pod in one.pods]
    reports = [look.reports.get(state.pod) for state in states]
    quiet = any(told and told.get("serving") is False for told in reports)
    rows = []
    for pod, rank, told in zip(one.pods, states, reports, strict=True):
        why = pods.waits(pod, look.warnings, look.nodes)
        mute = rank.ready and not told and (why or quiet)  # Kubernetes calls it ready for most of a minute
        now = replace(rank, ready=False, reason="silent") if mute else rank
        rows.append(pods.row(pod, now, told, why or (pods.MUTE if mute else "")))
    missing = {str(rank["rank"]): rank for rank in one.record.get("ranks", ())}
    missing = {number: rank for number, rank in missing.items() if number not in {state.rank for state in states}}
    if one.pods or one.wanted:  # of a group that was stopped none is missed
        rows += [pods.absent(rank, look.warnings, one.label) for rank in missing.values()]
    for row in rows:
        row["node"] = names.get(row["node"], row["node"])
    return sorted(rows, key=pods.order)


def _on_demand(one: Observed, now: str, rows: Sequence[Shown], look: Look) -> Shown:
    """`seconds`: since its pods were made, of `expected`; not of one that begins again in the same ones."""
    made = [pod.status.start_time for pod in one.pods if pod.status.start_time]
    first = all(not rank["restarts"] and ((rank["supervisor"] or {}).get("epoch") or 0) <= 1 for rank in rows)
    waking = now == "wakes" and first
    return {
        "idle_minutes": one.plan["idle_minutes"],
        "turns": one.plan.get("turns"),
        "nodes": list(one.plan.get("nodes") or ()),
        "seconds": round(max(0.0, look.at - max(made).timestamp())) if made and waking else None,
        "expected": one.served.get("ready_seconds") if waking else None,
    }


def _held(one: Observed, now: str, look: Look) -> int | None:
    """By the router, until the engine has room; by the waker, as long as it has none."""
    found = [look.held[name] for name in (one.name, one.label) if name in look.held][:1]
    if now in ("asleep", "wakes"):
        wakers = (f"{name}+waker" for name in (one.name, one.label))
        found += [look.held[name] for name in wakers if name in look.held][:1]
    return sum(found) if found else None


def _doing(rows: Sequence[Shown]) -> str:
    """What a start is at, by the first rank that says so."""
    said = [rank["supervisor"] for rank in rows if not rank["ready"] and rank["supervisor"]]
    return next((f"{told['phase']}: {told['text']}" for told in said if told.get("text")), "")


def _cause(rows: Sequence[Shown], faults: Sequence[str]) -> str:
    """One that only misses another is asked last."""
    ill = sorted((r for r in rows if not r["ready"] and r["cause"]), key=lambda rank: rank["state"] == "missing")
    return next(iter([*(f"rank {one['rank']} on {one['node']}: {one['cause']}" for one in ill), *faults]), "")


def _ended(group: Sequence[Any], look: Look) -> Shown | None:
    """Why its engines were last stopped, by the rank that knows it latest."""
    said = [(look.reports.get(str(pod.metadata.name)) or {}).get("ended") for pod in group]
    return max((one for one in said if one), key=lambda one: float(one["at"]), default=None)


def rails(rank: Shown) -> list[str]:
    return list((rank["supervisor"] or {}).get("rails") or ())


# --- nodes and rails ----------------------------------------------------------------------------------------------


def _node(node: Mapping[str, Any], groups: Sequence[Shown], look: Look) -> Shown:
    """A Spark as it is planned for those that are on it now; of a group that is not there nothing is drawn."""
    here = [
        {"group": one["name"], "rank": int(rank["rank"]), "gib": one["takes_gib"]}
        for one in groups
        for rank in one["ranks"]
        if rank["node"] == node["name"] and rank["rank"].isdigit()
    ]
    alone = any(one["fraction"] is None for one in groups for rank in one["ranks"] if rank["node"] == node["name"])
    drawn = {
        **{key: node[key] for key in ("usable_gib", "free_gib", "guard_gib")},
        "groups": here,
        "gpu": bars.gpu(len(here), alone=alone),
    }
    seen = look.nodes.get(node["kubernetes_node"])
    return {
        "name": node["name"],
        "ready": bool(seen and seen["ready"]),
        "there": seen is not None,
        "cordoned": bool(seen and seen["cordoned"]),
        **drawn,
        "now": dict(look.hosts.get(node["kubernetes_node"], {})),
        "bar": [
            {"what": part.what, "group": part.group or None, "gib": round(part.gib, 1)} for part in bars.parts(drawn)
        ],
    }


def _rail(rail: Mapping[str, Any], facts: Facts, groups: Sequence[Shown]) -> Shown:
    """What was measured over it last, and what is wrong with it at a rank that runs."""
    begins = f"rail {rail['name']}:"
    faults = [text for one in groups for text in one["rails"] if text.partition(": ")[2].startswith(begins)]
    pairs = (facts.get("fabric") or {}).get("pairs", ())
    measured = [pair["rails"][rail["name"]].get("gbit") for pair in pairs if rail["name"] in pair.get("rails", {})]
    speeds = [float(gbit) for gbit in measured if gbit is not None]
    return {
        **{key: rail.get(key) for key in ("name", "subnet", "link_gbit", "mtu")},
        "faults": faults,
        "slowest_gbit": min(speeds, default=None),
        "fastest_gbit": max(speeds, default=None),
    }


def fabric(report: Mapping[str, Any] | None) -> Shown | None:
    if not report:
        return None
    sums = [float(pair["sum_gbit"]) for pair in report.get("pairs", ()) if pair.get("sum_gbit") is not None]
    return {"time": report.get("time"), "verdict": report.get("verdict"), "slowest_gbit": min(sums, default=None)}
