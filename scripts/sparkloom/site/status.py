"""What is served now: the pods, what their supervisors say, and the record of the last proved start. Reads only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests.names import CONFIG_HASH, ENGINES, PROFILE, RANK
from sparkloom.site import client, lease, served
from sparkloom.site import ranks as every
from sparkloom.site.client import Client


def status(inventory: Inventory = None, profile: str | None = None) -> dict[str, Any]:
    """As `sparkloom status --json` prints it; with a profile: does that one serve?"""
    cluster = case.cluster(inventory)
    reached = client.of(cluster)
    pods = _asked(lambda: reached.pods(ENGINES), cluster)
    record = served.read(reached)
    called = {node.name: node.kubernetes_node for node in cluster.nodes}
    planned = served.planned(reached.records(), pods, record)
    ranks = every.read(reached, pods, [{**rank, "node": called.get(rank["node"], rank["node"])} for rank in planned])
    return summary(cluster, pods, ranks, record, profile) | {"operation": _operation(reached, cluster)}


def _operation(reached: Client, cluster: Cluster) -> str | None:
    """Who works on this site now, or what somebody left half done."""
    from kubernetes.client import ApiException, CoordinationV1Api

    try:
        held, _ = lease.Book(CoordinationV1Api(reached.core.api_client), cluster.name).read()
    except ApiException:  # who may read pods need not read Leases
        return None
    if held is None:
        return None
    return lease.half_done(held) if held.state == lease.ENDED else f"at work: {held.told()}"


def summary(
    cluster: Cluster, pods: list[Any], ranks: list[every.Rank], record: served.Record, asked: str | None = None
) -> dict[str, Any]:
    running = sorted({str(pod.metadata.labels.get(PROFILE)) for pod in pods})
    hashes = {(pod.metadata.annotations or {}).get(CONFIG_HASH) for pod in pods}
    whole = bool(ranks) and all(rank["ready"] for rank in ranks)
    named = record.get("profile", "")
    ours = bool(pods and record) and record.get("config_hash") in hashes and len(hashes) == 1
    carried = next(iter(hashes)) if len(hashes) == 1 else None
    rails = [f"rank {rank['rank']} on {rank['node']}: {text}" for rank in ranks for text in _rails(rank)]
    profile = (named if ours else ", ".join(running)) or None
    return {
        "site": cluster.name,
        "serving": whole and len(running) == 1 and asked in (None, profile),
        "asked": asked,
        "profile": profile,
        "model": record.get("model") if ours else None,
        "config_hash": carried,
        "current": _current(record, cluster, carried) if ours else None,
        "proved": ours,
        "since": served.since(pods) or None if whole else None,
        **{key: record.get(key) if ours else None for key in ("engine", "release", "image", "digest")},
        "transport": record.get("transport") if ours and not rails else None,
        "rails": rails,
        "restarts": sum(rank["restarts"] for rank in ranks),
        "ranks": ranks,
        "failed": record.get("failed"),
    }


def _current(record: served.Record, cluster: Cluster, carried: str | None) -> bool | None:
    """Whether the profile and the inventory, rendered now, would give what runs; None where that cannot be said."""
    try:
        rendered = case.render(record["profile"], cluster, force=True, policy=record.get("policy", case.POLICY))
    except InputError:
        return None
    return rendered.digest == carried


def text(shown: dict[str, Any]) -> str:
    """For a person: one line for the group, one for each rank, and what failed last."""
    lines = [_head(shown)]
    for rank in shown["ranks"]:
        told = rank["supervisor"] or {}
        broken = [*_rails(rank)]
        way = "" if broken else told.get("transport") or ""
        parts = [rank["state"], f"{rank['restarts']} restarts" if rank["restarts"] else "", way]
        line = f"  rank {rank['rank']}  {rank['node']:<10}  " + ", ".join(part for part in parts if part)
        said = rank["cause"] if not rank["ready"] else "; ".join(broken)
        lines.append(line + (f"\n          {said}" if said else ""))
    if shown["transport"] and shown["serving"]:
        lines.append(f"  rails: {shown['transport']}")
    if shown["failed"]:
        failed = shown["failed"]
        lines.append(f"last failure: {failed['profile']} at {failed['at']}: {failed['cause'].splitlines()[0]}")
    if shown.get("operation"):
        lines.append(str(shown["operation"]))
    return "\n".join(lines)


def _rails(rank: every.Rank) -> list[str]:
    return list((rank["supervisor"] or {}).get("rails") or ())


def _head(shown: dict[str, Any]) -> str:
    if shown["asked"] and shown["asked"] != shown["profile"]:
        there = f"{shown['profile']} is there" if shown["profile"] else "nothing is served"
        return (
            f"{shown['site']}: {shown['asked']} does not serve, {there}; "
            f"playbooks/switch.yml -e profile={shown['asked']} changes to it"
        )
    if not shown["ranks"]:
        return f"{shown['site']}: nothing is served; playbooks/serve.yml serves the inventory's profile"
    state = "serves" if shown["serving"] else "does not serve yet"
    words = f"{shown['site']}: {shown['profile']} {state}"
    if shown["since"]:
        words += f" since {shown['since']}"
    words += f", config {shown['config_hash'] or 'not the same on all ranks'}"
    if shown["current"] is False:
        words += "; profile or inventory have changed since: playbooks/serve.yml would renew it"
    return words if shown["proved"] else words + "; this start was not proved"


def logs(inventory: Inventory, rank: int | None, *, follow: bool, previous: bool) -> Iterator[str]:
    """Lines of one rank, or of all, each with its rank."""
    cluster = case.cluster(inventory)
    reached = client.of(cluster)
    pods = _asked(lambda: reached.pods(ENGINES), cluster)
    chosen = [pod for pod in pods if rank is None or pod.metadata.labels.get(RANK) == str(rank)]
    if not chosen:
        known = ", ".join(sorted(pod.metadata.labels.get(RANK, "?") for pod in pods))
        wanted = f"rank {rank}; there are: {known}" if known else "any rank; nothing is served"
        raise InputError.single(cluster.name, f"found no pod of {wanted}", rule="no-such-rank")
    if follow and len(chosen) > 1:
        raise InputError.single("--follow", "follows one rank: add --rank N (0 is the head)", rule="usage")
    for pod in chosen:
        mark = f"[rank {pod.metadata.labels.get(RANK)}] " if len(chosen) > 1 else ""
        yield from (mark + line for line in _lines(reached, pod.metadata.name, follow, previous))


def _lines(reached: Client, pod: str, follow: bool, previous: bool) -> Iterator[str]:
    from kubernetes.client import ApiException

    try:
        yield from reached.stream(pod, previous=previous, follow=follow)
    except ApiException as error:
        sys.stderr.write(f"{pod}: no such log ({error.reason})\n")


def _asked(question: Callable[[], Any], cluster: Cluster) -> Any:
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        return question()
    except (ApiException, HTTPError) as error:
        reason = getattr(error, "reason", "") or error
        message = f"the cluster does not answer: {reason}; cluster.kubernetes.kubeconfig names it"
        raise InputError.single(client.kubeconfig(cluster), message, rule="no-cluster") from None
