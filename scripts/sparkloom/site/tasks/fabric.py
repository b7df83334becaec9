"""What each node has on the rails, and what it read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from sparkloom.base import files, json_text
from sparkloom.base.finding import errors
from sparkloom.base.repository import kept
from sparkloom.launch import fabric
from sparkloom.launch.groups import Running
from sparkloom.site import ansible, nodefiles
from sparkloom.site.ansible import Context, Data
from sparkloom.site.cabling import look
from sparkloom.site.checks import bandwidth, bandwidth_verdict
from sparkloom.site.checks import rails as judged_rails
from sparkloom.site.foreign import judge
from sparkloom.site.foreign.node import Node
from sparkloom.site.groups import observed


class Shape(TypedDict):
    """How much each run of a measurement sends."""

    size: int  # bytes of a message
    iterations: int  # messages of a run
    queue_pairs: int  # queue pairs of a run


def plan(
    context: Context,
    # Groups that are about to start, where the site has several, each with its `nodes` and `vf`. Those that run are
    # read from their record (build/<site>/fleet.json). In pods only a group's own addresses and the hosts' are heard.
    groups: Sequence[Data] = (),
) -> Data:
    """`nodes` has the files and pings of each, `rails` the names of the rails."""
    cluster = context.cluster
    planned = fabric.plan(cluster)
    runs = observed.recorded(cluster).values() if cluster.several else ()
    starting = [Running("", "", tuple(one["nodes"]), one.get("vf")) for one in groups]
    return {"nodes": nodefiles.every(cluster, planned, [*runs, *starting]), "rails": list(planned.rails)}


def foreign(
    context: Context,
    probe: str,  # variable that every node registered from `definitions`
    adopt: bool = False,  # consent to take over what can be taken over
) -> Data:
    """What somebody else has set up on the rails; `nodes` has what goes of each node with the consent."""
    cluster, only = context.cluster, ansible.asked(context.vars)
    planned = fabric.plan(cluster)
    read = {
        host: found["network"]
        for host, found in ansible.registered(context.vars, probe).items()
        if host in only and "network" in found
    }
    rows = [row for host in read for row in judge.judge(cluster, planned, host, read[host], adopt)]
    nothing: Data = {"files": [], "addresses": []}
    nodes = {
        host: judge.changes(Node(host, cluster, planned, network)) if adopt else nothing
        for host, network in read.items()
    }
    return {**ansible.verdict(rows, "nobody else defines the rails"), "nodes": nodes}


def rails(
    context: Context,
    probe: str,  # variable that every node registered from `probe`
    strangers: bool = False,  # judge only who is let in that should not be
) -> Data:
    """One table for all nodes; fails when a rail is not as planned."""
    cluster, only = context.cluster, ansible.asked(context.vars)
    planned, probes = fabric.plan(cluster), ansible.registered(context.vars, probe)
    if strangers:
        return ansible.verdict(judged_rails.strangers(probes, only), "nobody but planned peers was let in")
    rows = judged_rails.judge(cluster, planned, probes, only)
    where = f"between {len(cluster.nodes)} nodes"
    if len(only) < len(cluster.nodes):
        where = f"between {', '.join(sorted(only))} and what answers of the others"
    return ansible.verdict(rows, f"{len(planned.rails)} rails hold {where}")


def cabling(
    context: Context,
    machine: str,  # variable that every node registered from `machine`
    links: str,  # variable that every node registered from `listen`
) -> Data:
    """How the nodes are cabled. What each told, and what it was taken for, is kept in build/<site>/cabling.json."""
    cluster = context.cluster
    facts = look.merge(ansible.registered(context.vars, machine), ansible.registered(context.vars, links))
    found = look.judge(cluster, facts)
    path = look.keep(kept(cluster.name), cluster, facts, found)
    text = f"{look.text(cluster, found)}\nwhat each node told: {path}"
    return {"failed": bool(errors(found.findings)), "msg": text, "kind": found.kind}


def bandwidth_plan(context: Context, nodes: Sequence[str], shape: Shape) -> Data:
    """Who measures whom over the rails."""
    cluster = context.cluster
    return bandwidth.tests(cluster, fabric.plan(cluster), list(nodes), **shape)


def bandwidth_due(
    context: Context,
    nodes: str,  # variable that every node registered, with its boot
) -> Data:
    """Whether a node started since the rails were measured; what is no GB10 has no rails of that speed."""
    cluster, now = context.cluster, _boots(context, nodes)
    known = json_text.kept(kept(cluster.name) / "fabric_check.json").get("boots", {})
    due = any(known.get(node) != boot for node, boot in now.items())
    return {"due": cluster.expect_gb10 and len(now) > 1 and due}


def _boots(context: Context, answers: str) -> dict[str, str]:
    told = ansible.registered(context.vars, answers)
    return {node: answer["boot"] for node, answer in told.items() if answer.get("boot") and not answer["missing"]}


def bandwidth_judge(
    context: Context,
    served: str,  # variable that each listening node registered
    runs: str,  # variable that holds each node's runs
    thresholds: Mapping[str, Any],  # where the site differs from its mode
    warn: bool = False,  # what is found is said, and the run goes on
) -> Data:
    """What was measured; the verdict stands in build/<site>/fabric_check.json too."""
    cluster = context.cluster
    limits = bandwidth.thresholds(cluster.fabric, thresholds)
    left_out = list(bandwidth_verdict.unread(ansible.registered(context.vars, served)))
    measures = bandwidth.measures(bandwidth_verdict.without(ansible.registered(context.vars, runs), left_out), limits)
    judged = list(bandwidth.pairs(measures, limits))
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    report = bandwidth_verdict.report(cluster.name, measures, judged, left_out, limits, when, _boots(context, served))
    target = files.write(kept(cluster.name) / "fabric_check.json", json.dumps(report, indent=1) + "\n")
    findings = [*left_out, *bandwidth_verdict.findings(measures, judged, limits)]
    passed = bandwidth_verdict.summary(judged) if judged else "nothing was measured"
    told = {**ansible.verdict(findings, passed), "verdict": report["verdict"], "report": str(target)}
    if warn and findings:
        worst = f"rails: {findings[0].where}, {findings[0].rule}: {findings[0].message}; {findings[0].fix}"
        told |= {"failed": False, "warnings": [worst]}
    return told
