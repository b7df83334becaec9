"""All groups of a site on one screen: what each serves, where, since when, by which proof, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkloom.onnode.now.picture import state, well
from sparkloom.site.groups.records import Record
from sparkloom.site.roster import Member, Roster

Shown = dict[str, Any]
ASLEEP = "is asleep, wakes with the next request"
STATES = {
    "serves": "serves",
    "starts": "does not serve yet",
    "wakes": "wakes",
    "failed": "has failed, and does not mend itself",
    "incomplete": "lacks a rank",
    "asleep": ASLEEP,
    "down": "is not running; playbooks/serve.yml starts it",
    "gone": "has no pods any more, but what was applied is left; playbooks/serve.yml takes it away",
}
# What the whole site is told by where one group says it of itself.
OF_ONE = ("model", "config_hash", "engine", "release", "image", "digest", "transport")


def cause(ranks: Sequence[Shown], rails: Sequence[str]) -> str:
    """What is wrong now, by the rank that says most: one that is not ready, else a rail."""
    told = [f"rank {rank['rank']} on {rank['node']}: {rank['cause']}" for rank in ranks if _wrong(rank)]
    return next(iter([*told, *rails]), "")


def _wrong(rank: Shown) -> bool:
    return not rank["ready"] and bool(rank["cause"])


def group(member: Member, summed: Shown, *, alias: str, nodes: Sequence[str]) -> Shown:
    """One of `groups` in the JSON: what `summary` says of it, and what only a fleet asks about."""
    own = ("model", "config_hash", "current", "proved", "since", "engine", "release", "image", "digest",
           "transport", "rails", "restarts", "ranks", "failed")  # fmt: skip
    ranks = summed["ranks"]
    now = state(ranks, listed=member.listed, on_demand=member.on_demand, wanted=member.wanted)
    return {
        "name": member.name,
        "profile": member.carries,
        "alias": alias or None,
        "listed": member.listed,
        "nodes": list(nodes),
        "fraction": member.fraction,
        "state": now,
        "serving": now == "serves",
        "cause": cause(ranks, summed["rails"]) or None,
        **{key: summed[key] for key in own},
    }


def whole(site: str, roster: Roster, groups: list[Shown], asked: str | None, problem: str = "") -> Shown:
    """The keys of a site with one group, told of all; `groups` has each."""
    wanted = (
        [one for one in groups if one["listed"]] if roster.listed else [one for one in groups if one["state"] != "gone"]
    )
    there = [one for one in groups if one["state"] not in ("down", "gone")]
    runs = dict.fromkeys(one.carries for one in roster.members if one.pods or one.asleep)
    failed: list[Record] = [one["failed"] for one in groups if one["failed"]]
    current = [one["current"] for one in there if one["current"] is not None]
    return {
        "site": site,
        "serving": bool(wanted) and all(well(one) for one in wanted),
        "asked": asked,
        "profile": ", ".join(runs) or None,
        **dict.fromkeys(OF_ONE),
        "current": all(current) if current else None,
        "proved": bool(there) and all(one["proved"] for one in there),
        "since": max((one["since"] for one in there if one["since"]), default=None),
        "rails": [f"{one['name']}: {text}" for one in groups for text in one["rails"]],
        "restarts": sum(one["restarts"] for one in groups),
        "ranks": [{"group": one["name"], **rank} for one in groups for rank in one["ranks"]],
        "failed": max(failed, key=lambda one: str(one["at"])) if failed else None,
        "groups": groups,
        "list_problem": _unread(roster) or problem or None,
    }


def _unread(roster: Roster) -> str:
    return f"which groups there should be is not known: {roster.problem}" if roster.problem else ""


def text(shown: Shown) -> str:
    """A line or two for each group; who wants all of one asks for it by name."""
    groups: list[Shown] = shown["groups"]
    listed = [one for one in groups if one["listed"]]
    others = [one for one in groups if not one["listed"]]
    lines = [_head(shown, listed, others)]
    if shown["list_problem"]:
        lines.append(str(shown["list_problem"]))
    lines += [line for one in listed for line in _lines(one)]
    strange = [one for one in others if one["state"] != "gone"]
    if strange and listed:
        lines.append("runs, and is not in the inventory's list; playbooks/serve.yml stops it:")
    lines += [line for one in strange for line in _lines(one)]
    lines += [line for one in others if one["state"] == "gone" for line in _lines(one)]
    if shown["failed"]:
        failed = shown["failed"]
        lines.append(f"last failure: {failed['profile']} at {failed['at']}: {str(failed['cause']).splitlines()[0]}")
    if shown.get("operation"):
        lines.append(str(shown["operation"]))
    if len(groups) > 1:
        lines.append("sparkloom status NAME says all of one")
    return "\n".join(lines)


def _head(shown: Shown, listed: Sequence[Shown], others: Sequence[Shown]) -> str:
    site = shown["site"]
    if shown["asked"] and not shown["groups"]:
        return f"{site}: no group has the profile {shown['asked']}; these run: {shown['profile'] or 'none'}"
    if not listed and not any(one["state"] != "gone" for one in others):
        return f"{site}: nothing is served, and the inventory's list is empty"
    wanted = listed or [one for one in others if one["state"] != "gone"]
    up = [one for one in wanted if one["serving"]]
    asleep = sum(one["state"] == "asleep" for one in wanted)
    rest = f", {asleep} asleep" if asleep else ""
    if len(up) == len(wanted):
        return f"{site}: {'all ' if len(up) > 1 else ''}{_groups(len(up))} {'serve' if len(up) > 1 else 'serves'}"
    return f"{site}: {len(up)} of {_groups(len(wanted))} serve{'s' if len(up) == 1 else ''}{rest}"


def _groups(count: int) -> str:
    return f"{count} group{'' if count == 1 else 's'}"


def _lines(one: Shown) -> list[str]:
    where = ", ".join(one["nodes"]) or "no Spark yet"
    share = f"{one['fraction']:g} of " if one["fraction"] else ""
    name = one["name"] if one["name"] == one["profile"] else f"{one['name']} ({one['profile']})"
    asked = f", asked for as {one['alias']}" if one["alias"] else ""
    return [f"  {name} on {share}{where}{asked}", f"    {_told(one)}"]


def _told(one: Shown) -> str:
    words = STATES[one["state"]]
    if one["state"] == "asleep":
        stale = "profile or inventory have changed since: playbooks/serve.yml would renew it"
        return f"{words}; {stale}" if one["current"] is False else words
    if one["state"] in ("down", "gone"):
        return words
    parts = [f"{words} since {one['since']}" if one["since"] else words]
    if one["restarts"]:
        parts.append(f"{one['restarts']} restarts")
    parts += [f"config {one['config_hash'] or 'not the same on all ranks'}"]
    if not one["proved"]:
        parts.append("this start was not proved")
    elif one["transport"] and one["serving"]:
        parts.append(str(one["transport"]))
    if one["current"] is False:
        parts.append("profile or inventory have changed since: playbooks/serve.yml would renew it")
    if one["cause"]:
        parts.append(str(one["cause"]))
    return "; ".join(parts)
