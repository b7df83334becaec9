"""What is served now: the pods, what their supervisors say, and the record of the last proved start. Reads only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests.names import CONFIG_HASH, PROFILE
from sparkloom.site import client, lease, roster, status_fleet
from sparkloom.site import ranks as every
from sparkloom.site.client import Client
from sparkloom.site.groups import records
from sparkloom.site.planned import Digest, Planned, alone
from sparkloom.site.roster import Member, Roster

AT_ONCE = 4  # groups


def status(inventory: Inventory = None, profile: str | None = None, group: str | None = None) -> dict[str, Any]:
    """As `sparkloom status --json` prints it; with a profile: does that one serve? With a group: that one alone."""
    cluster = case.cluster(inventory)
    reached = client.of(cluster)
    there = client.asked(lambda: roster.read(reached, cluster, inventory), cluster)
    only = there.one(group) if group else there.single
    plan = Planned(cluster, inventory, there)
    if only:
        ranks = _ranks(reached, cluster, there, only)
        now = summary(cluster, list(only.pods), ranks, only.served, profile, plan.digest(only), there.listed and only)
        now |= {"group": only.name} if there.listed or group else {}
        now |= {"groups": [_group(only, now, plan)]}
    elif there.members or there.listed or there.problem:
        now = _fleet(reached, cluster, there, plan, profile)
    else:
        now = summary(cluster, [], [], records.read(reached), profile) | {"groups": []}
    return now | {"operation": _operation(reached, cluster)}


def _fleet(reached: Client, cluster: Cluster, there: Roster, plan: Planned, profile: str | None) -> dict[str, Any]:
    """With a profile: of the groups that have it."""
    chosen = [one for one in there.members if profile in (None, one.profile, one.carries)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ranks = list(pool.map(lambda one: _ranks(reached, cluster, there, one), chosen))
    groups = []
    for member, mine in zip(chosen, ranks, strict=True):
        now = summary(cluster, list(member.pods), mine, member.served, None, plan.digest(member), member)
        groups.append(_group(member, now, plan))
    return status_fleet.whole(cluster.name, there, groups, profile, plan.problem)


def _group(member: Member, summed: dict[str, Any], plan: Planned) -> dict[str, Any]:
    return status_fleet.group(member, summed, alias=plan.alias(member), nodes=member.nodes or plan.nodes(member))


def _ranks(reached: Client, cluster: Cluster, there: Roster, member: Member) -> list[every.Rank]:
    """One that should be there and has no pod at all has no ranks: it was not started, or was stopped."""
    called = {node.name: node.kubernetes_node for node in cluster.nodes}
    planned = member.record.get("ranks", ()) if member.pods or not (there.listed and member.listed) else ()
    known = [{**rank, "node": called.get(rank["node"], rank["node"])} for rank in planned]
    return every.read(reached, member.pods, known, member.label)


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
    cluster: Cluster,
    pods: list[Any],
    ranks: list[every.Rank],
    record: records.Record,
    asked: str | None = None,
    digest: Digest | None = None,
    member: Member | Literal[False] = False,
) -> dict[str, Any]:
    """Of one group. `digest` says what its pods would carry, rendered now; `member`: whose pods they are, where that is
    known by more than their label.
    """
    running = sorted({str(pod.metadata.labels.get(PROFILE)) for pod in pods})
    hashes = {(pod.metadata.annotations or {}).get(CONFIG_HASH) for pod in pods}
    asleep = bool(member and member.asleep)
    hashes |= {member.record.get("config_hash")} if member and asleep else set()
    whole = bool(ranks) and all(rank["ready"] for rank in ranks)
    named = record.get("profile", "")
    ours = bool((pods or asleep) and record) and record.get("config_hash") in hashes and len(hashes) == 1
    carried = next(iter(hashes)) if len(hashes) == 1 else None
    rails = [f"rank {rank['rank']} on {rank['node']}: {text}" for rank in ranks for text in _rails(rank)]
    profile = (named if ours else member.carries if member else ", ".join(running)) or None
    profile = profile if pods or asleep or not member else None
    return {
        "site": cluster.name,
        "serving": whole and len(running) == 1 and asked in (None, profile),
        "asked": asked,
        "profile": profile,
        "model": record.get("model") if ours else None,
        "config_hash": carried,
        "current": _current(record, digest or alone(cluster), carried) if ours else None,
        "proved": ours,
        "since": records.since(pods) or None if whole else None,
        **{key: record.get(key) if ours else None for key in ("engine", "release", "image", "digest")},
        "transport": record.get("transport") if ours and not rails else None,
        "rails": rails,
        "restarts": sum(rank["restarts"] for rank in ranks),
        "ranks": ranks,
        "failed": record.get("failed"),
    }


def _current(record: records.Record, digest: Digest, carried: str | None) -> bool | None:
    """Whether the profile and the inventory, rendered now, would give what runs; None where that cannot be said."""
    try:
        now = digest(record)
    except InputError:
        return None
    return None if now is None else now == carried


def text(shown: dict[str, Any]) -> str:
    """For a person: one line for the group, one for each rank, and what failed last; of several a line or two each."""
    if "list_problem" in shown:
        return status_fleet.text(shown)
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
    if _asleep(shown):
        return f"{shown['site']}: {_named(shown)} {status_fleet.ASLEEP}"
    if not shown["ranks"] and shown.get("group"):
        return f"{shown['site']}: {shown['group']} is not running; playbooks/serve.yml starts it"
    if not shown["ranks"]:
        return f"{shown['site']}: nothing is served; playbooks/serve.yml serves the inventory's profile"
    words = f"{shown['site']}: {_named(shown)} {_state(shown)}"
    if shown["since"]:
        words += f" since {shown['since']}"
    words += f", config {shown['config_hash'] or 'not the same on all ranks'}"
    if shown["current"] is False:
        words += "; profile or inventory have changed since: playbooks/serve.yml would renew it"
    return words if shown["proved"] else words + "; this start was not proved"


def _state(shown: dict[str, Any]) -> str:
    told = next((one["state"] for one in shown.get("groups", ())), "starts")
    return status_fleet.STATES["serves" if shown["serving"] else told if told != "serves" else "starts"]


def _asleep(shown: dict[str, Any]) -> bool:
    return [one["state"] for one in shown.get("groups", ())] == ["asleep"]


def good(shown: dict[str, Any]) -> bool:
    """Whether all that is asked about serves, or would with the next request."""
    return bool(shown["serving"]) or _asleep(shown)


def _named(shown: dict[str, Any]) -> str:
    """The profile, behind the group's own name where it has one."""
    group, profile = shown.get("group"), shown["profile"]
    return f"{group} ({profile})" if group and profile and group != profile else str(profile or group)
