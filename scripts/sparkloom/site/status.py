"""What is served now: the groups as page and `--watch` have them, and whether each is what would be applied now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkloom import case
from sparkloom.base import amount
from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.onnode.now import ground, picture
from sparkloom.onnode.now.groups import WORDS, Observed, healthy, resting
from sparkloom.site import facts, lease, now
from sparkloom.site.now import Site

Shown = dict[str, Any]
# What the whole site is told by where one group says it of itself.
OF_ONE = ("model", "config_hash", "engine", "release", "image", "digest", "transport")
STALE = "profile or inventory have changed since: playbooks/serve.yml would renew it"
LEFT = ("down", "gone")  # nothing of it runs
STATES = WORDS | {
    "starts": "does not serve yet",
    "failed": "has failed, and does not mend itself",
    "asleep": "is asleep, wakes with the next request",
    "stopped": "is stopped",
    "down": "is not running; playbooks/serve.yml starts it",
    "gone": "has no pods any more, but what was applied is left; playbooks/serve.yml takes it away",
}


def status(inventory: Inventory = None, profile: str | None = None, group: str | None = None) -> Shown:
    """As `sparkloom status --json` prints it; with a profile: does that one serve? With a group: that one alone."""
    site = now.read(inventory)
    only = site.one(group) if group else site.single
    if only is None and (site.groups or site.planned.listed):
        chosen = [one for one in site.groups if profile in (None, one.profile, one.plan.get("profile"))]
        shown = _whole(site, [_group(one, site) for one in chosen], profile)
    else:
        shown = _alone(site, _group(only, site) if only else None, profile, named=bool(group or site.planned.listed))
    measured = picture.fabric(facts.measured(site.cluster)) if len(site.cluster.nodes) > 1 else None
    problems = ground.ill(site.look, site.cluster.called)
    return shown | {"operation": _operation(site), "fabric": measured, "problems": problems}


def _group(one: Observed, site: Site) -> Shown:
    """As page and `--watch` have it, less figures, for which nobody was asked; nodes of ranks as kubectl has them."""
    names = {node.name: node.kubernetes_node for node in site.cluster.nodes}
    drawn = picture.group(one, site.look, names)
    told = {key: value for key, value in drawn.items() if key not in picture.FIGURES}
    return {
        **told,
        "current": _current(one, site, told["config_hash"]) if drawn["proved"] else None,
        "cause": drawn["cause"] or None,
    }


def _current(one: Observed, site: Site, carried: str | None) -> bool | None:
    """Whether the profile and the inventory, rendered now, would give what runs; None where that cannot be said."""
    policy, planned = one.served.get("policy", case.POLICY), site.planned
    try:
        place = planned.one(one.name) if planned.listed else None
        if planned.listed and place is None:
            return None
        profile, seat = (place.group.profile, place.group) if place else (one.served["profile"], None)
        return case.render(profile, site.cluster, force=True, policy=policy, seat=seat).digest == carried
    except InputError:
        return None


def _alone(site: Site, one: Shown | None, asked: str | None, *, named: bool) -> Shown:
    """Of one group, or of a site where nothing is."""
    known: Shown = one or {"serving": False, "proved": False, "restarts": 0, "rails": [], "ranks": []}
    runs = one["profile"] if one and one["state"] not in LEFT else None
    keys = ("model", "config_hash", "current", "proved", "since", "engine", "release", "image", "digest", "transport",
            "rails", "restarts", "ranks", "failed")  # fmt: skip
    return {
        "site": site.cluster.name,
        "serving": known["serving"] and asked in (None, runs),
        "asked": asked,
        "profile": runs,
        **{key: known.get(key) for key in keys},
        **({"group": one["name"]} if one and named else {}),
        "groups": [one] if one else [],
    }


def _whole(site: Site, groups: list[Shown], asked: str | None) -> Shown:
    """The keys of a site with one group, told of all; `groups` has each."""
    read = site.planned.listed and site.planned.listing is not None
    wanted = [one for one in groups if (one["listed"] if read else one["state"] != "gone")]
    there = [one for one in groups if one["state"] not in LEFT]
    failed = [one["failed"] for one in groups if one["failed"]]
    current = [one["current"] for one in there if one["current"] is not None]
    return {
        "site": site.cluster.name,
        "serving": bool(wanted) and all(healthy(one) for one in wanted),
        "asked": asked,
        "profile": ", ".join(dict.fromkeys(one.profile for one in site.groups if one.pods or one.asleep)) or None,
        **dict.fromkeys(OF_ONE),
        "current": all(current) if current else None,
        "proved": bool(there) and all(one["proved"] for one in there),
        "since": max((one["since"] for one in there if one["since"]), default=None),
        "rails": [f"{one['name']}: {text}" for one in groups for text in one["rails"]],
        "restarts": sum(one["restarts"] for one in groups),
        "ranks": [{"group": one["name"], **rank} for one in groups for rank in one["ranks"]],
        "failed": max(failed, key=lambda one: str(one["at"])) if failed else None,
        "groups": groups,
        "list_problem": site.planned.problem or None,
    }


def _operation(site: Site) -> str | None:
    """Who works on this site now, or what somebody left half done."""
    from kubernetes.client import ApiException, CoordinationV1Api

    try:
        held, _ = lease.Book(CoordinationV1Api(site.reached.core.api_client), site.cluster.name).read()
    except ApiException:  # who may read pods need not read Leases
        return None
    if held is None:
        return None
    return lease.half_done(held) if held.state == lease.ENDED else f"at work: {held.sentence()}"


def good(shown: Shown) -> bool:
    """Whether all that is asked about serves, or would with the next request."""
    return bool(shown["serving"]) or [one["state"] for one in shown["groups"]] == ["asleep"]


# --- in words -----------------------------------------------------------------------------------------------------


def text(shown: Shown) -> str:
    """Of one group a line, and one for each rank; of several a line or two each. Then what failed last."""
    several = "list_problem" in shown
    lines = list(_several(shown) if several else _one(shown))
    if failed := shown["failed"]:
        lines.append(f"last failure: {failed['profile']} at {failed['at']}: {str(failed['cause']).splitlines()[0]}")
    if (fabric := shown.get("fabric")) and fabric["slowest_gbit"] is not None:
        speed = f"{fabric['slowest_gbit']:.4g} Gb/s between the slowest two"
        lines.append(f"rails: {speed} on {fabric['time']}, {fabric['verdict']}")
    lines += shown.get("problems", ())
    if shown.get("operation"):
        lines.append(str(shown["operation"]))
    if several and len(shown["groups"]) > 1:
        lines.append("sparkloom status NAME says all of one")
    return "\n".join(lines)


def _one(shown: Shown) -> list[str]:
    lines = [_head(shown)]
    for rank in shown["ranks"]:
        told, broken = rank["supervisor"] or {}, picture.rails(rank)
        way = "" if broken else told.get("transport") or ""
        parts = [rank["state"], f"{rank['restarts']} restarts" if rank["restarts"] else "", way]
        said = "; ".join(broken) if rank["ready"] else rank["cause"]
        lines.append(f"  rank {rank['rank']}  {rank['node']:<10}  " + ", ".join(part for part in parts if part))
        lines += [f"          {said}"] if said else []
    lines += [f"  {why}" for one in shown["groups"] for why in _before(one)]
    if shown["transport"] and shown["serving"]:
        lines.append(f"  rails: {shown['transport']}")
    return lines


def _head(shown: Shown) -> str:
    site, profile, name = shown["site"], shown["profile"], shown.get("group")
    if shown["asked"] and shown["asked"] != profile:
        there = f"{profile} is there" if profile else "nothing is served"
        cure = f"playbooks/switch.yml -e profile={shown['asked']} changes to it"
        return f"{site}: {shown['asked']} does not serve, {there}; {cure}"
    if not shown["ranks"] and not name and not profile:
        return f"{site}: nothing is served; playbooks/serve.yml serves the inventory's profile"
    (one,) = shown["groups"]
    called = f"{name} ({profile})" if name and profile and name != profile else profile or name or one["name"]
    return f"{site}: {called} {'; '.join(_state(one))}"


def _several(shown: Shown) -> list[str]:
    """Those of the list, those beside it, those that are left over."""
    groups: list[Shown] = shown["groups"]
    listed = [one for one in groups if one["listed"]]
    others = [one for one in groups if not one["listed"]]
    strange = [one for one in others if one["state"] != "gone"]
    beside = "runs, and is not in the inventory's list; playbooks/serve.yml stops it:"
    return [
        _heading(shown, listed, strange),
        *([str(shown["list_problem"])] if shown["list_problem"] else []),
        *(line for one in listed for line in _lines(one)),
        *([beside] if strange and listed else []),
        *(line for one in strange for line in _lines(one)),
        *(line for one in others if one["state"] == "gone" for line in _lines(one)),
    ]


def _heading(shown: Shown, listed: Sequence[Shown], strange: Sequence[Shown]) -> str:
    site, wanted = shown["site"], listed or strange
    if shown["asked"] and not shown["groups"]:
        return f"{site}: no group has the profile {shown['asked']}; these run: {shown['profile'] or 'none'}"
    if not wanted:
        return f"{site}: nothing is served, and the inventory's list is empty"
    up = sum(one["serving"] for one in wanted)
    groups = amount.of(len(wanted), "group")
    if up == len(wanted):
        return f"{site}: {'all ' if up > 1 else ''}{groups} serve{'s' * (up == 1)}"
    return f"{site}: {up} of {groups} serve{'s' * (up == 1)}{resting(wanted)}"


def _lines(one: Shown) -> list[str]:
    where = ", ".join(one["nodes"]) or "no Spark yet"
    share = f"{one['fraction']:g} of " if one["fraction"] else ""
    name = one["name"] if one["name"] == one["profile"] else f"{one['name']} ({one['profile']})"
    asked = f", asked for as {one['alias']}" if one["alias"] else ""
    told = _state(one)
    way = [one["transport"]] if one["serving"] and one["transport"] else []
    restarts = [f"{one['restarts']} restarts"] if one["restarts"] else []
    wrong = [one["cause"]] if one["cause"] else _before(one)
    return [f"  {name} on {share}{where}{asked}", f"    {'; '.join([told[0], *restarts, *told[1:], *way, *wrong])}"]


def _before(one: Shown) -> list[str]:
    """Of one that starts again, why it had to."""
    ended = one["ended"] if one["state"] == "starts" else None
    return [f"epoch {ended['epoch']} ended: {ended['why']}"] if ended else []


def _state(one: Shown) -> list[str]:
    """Its state and since when, which configuration it carries, and whether that is the one to have."""
    words = f"{STATES[one['state']]} since {one['since']}" if one["since"] else STATES[one["state"]]
    if one["state"] == "stopped":
        words = f"is {one['word']}; `sparkloom start {one['name']}` brings it back"
    stale = [STALE] if one["current"] is False else []
    if one["state"] in LEFT:
        return [words]
    if one["state"] in ("asleep", "stopped"):
        return [words, *stale]
    unproved = [] if one["proved"] else ["this start was not proved"]
    return [f"{words}, config {one['config_hash'] or 'not the same on all ranks'}", *unproved, *stale]
