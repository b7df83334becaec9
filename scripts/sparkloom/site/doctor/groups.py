"""The groups of a site: what each one's tasks are told, and what nobody's group left behind.

Everything else of a site is asked once. What is found of a group names it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparkloom.base.finding import Finding
from sparkloom.inputs import group_name
from sparkloom.render.manifests import names
from sparkloom.site.checks import report, serving
from sparkloom.site.client import Client
from sparkloom.site.groups import leftovers, planning, records

if TYPE_CHECKING:  # a verdict needs no plan
    from sparkloom.judge.fleet import FleetPlan

Data = dict[str, Any]
KNOWN = "__doctor_groups"  # under which a plan tells the machines of them
STOPS = "playbooks/serve.yml makes the site equal to its list, and stops what is not in it"


def planned(plan: FleetPlan, word: str, profile: str) -> list[Data]:
    """Each group as roles take it; only the one of that name, only those of that profile, where somebody asks so."""
    chosen = [one for one in plan.grouped if profile in ("", one.group.profile)]
    if word:
        chosen = [one for one in chosen if word in (one.group.name, one.group.alias, one.group.label)]
    return [planning.as_dict(one.group) for one in chosen]


def unlisted(profile: str) -> Data:
    """That of a site without a list: its findings name no group."""
    return {"name": "", "profile": profile, "nodes": []}


def variables(group: Mapping[str, Any]) -> Data:
    """The variables of role model_serving that say which group is meant."""
    return {
        "model_serving_profile": group["profile"],
        "__model_serving_group": {name: group[name] for name in ("profile", "nodes")},
        "__model_serving_seat": group.get("seat", {}),
    }


def registered(machines: Mapping[str, Data], group: str) -> dict[str, Any]:
    """What the machines registered, with the weights of that group."""
    return {host: ChainMap(seen.get(KNOWN, {}).get(group, {}), seen) for host, seen in machines.items()}


def refused(plan: FleetPlan) -> Data:
    """As a task's result: the list cannot be had on this site; empty where it can."""
    if plan.fits is not False:
        return {}
    fix = f"one of these would do: {'; '.join(plan.advice)}" if plan.advice else "sparkloom fleet plan -i says more"
    return {"failed": True, "rows": [report.as_dict(Finding("cluster", "list", plan.reason, "room for all", fix))]}


def failures(reached: Client, group: Mapping[str, Any]) -> Data:
    """As a task's result: that the last start of a group failed, which its record remembers."""
    record = records.read(reached, str(group["served"]))
    return {"rows": records.judged(record, str(group["profile"]), "")["rows"]} if record.get("failed") else {}


def strangers(reached: Client, listed: Iterable[str]) -> list[Finding]:
    """Pods of groups that are not in the list, and what was left of some that have none any more."""
    labels = {spelling for name in listed for spelling in (names.marked(name), group_name.label(name))}
    there: dict[str, list[str]] = {}
    for pod in reached.pods(names.ENGINES):
        there.setdefault(str(pod.metadata.labels.get(names.PROFILE)), []).append(str(pod.spec.node_name))
    unlisted = {label: nodes for label, nodes in sorted(there.items()) if label not in labels}
    found = [
        Finding("cluster", "model", f"{label} on {', '.join(sorted(set(nodes)))}", "no group beside the list's", STOPS)
        for label, nodes in unlisted.items()
    ]
    gone = leftovers.take(reached, {*labels, *unlisted}, dry=True)
    return [*found, *serving.left_behind(gone)]


def merged(findings: Iterable[Finding], every: Sequence[str]) -> list[Finding]:
    """What is found of several groups in the same words is said once: of these groups, or of the site if all say so."""
    owners: dict[Finding, list[str]] = {}
    for finding in findings:
        owners.setdefault(replace(finding, group=""), []).append(finding.group)
    return [replace(finding, group=_owner(of, every)) for finding, of in owners.items()]


def _owner(of: Sequence[str], every: Sequence[str]) -> str:
    shared = "" in of or (len(every) > 1 and set(every) <= set(of))
    return "" if shared else ", ".join(dict.fromkeys(of))
