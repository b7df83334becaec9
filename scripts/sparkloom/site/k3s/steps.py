"""The steps of the role that run on the controller, over plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkloom.base.finding import Finding, errors
from sparkloom.judge import log_causes
from sparkloom.render.k3s import machines, paths
from sparkloom.render.k3s.options import Options
from sparkloom.site.k3s import judge

PLACES = {
    "binary": paths.BINARY,
    "config": paths.CONFIG,
    "record": paths.RECORD,
    "stamp": paths.STAMP,
    "containerd": paths.CONTAINERD,
    "kubelet": paths.KUBELET,
    "services": list(paths.SERVICES.values()),
    "search": paths.SEARCH,
}
SECRETS = {"token": paths.TOKEN, "agent_token": paths.AGENT_TOKEN, "joining": paths.JOIN_TOKENS}

Secrets = Mapping[str, Any]  # what `k3s_secrets` read: tokens


def causes() -> list[dict[str, Any]]:
    """What K3s says when it cannot go on: the same that `sparkloom diagnose` knows of its log."""
    return [
        {
            "id": cause.id,
            "pattern": cause.log_pattern,
            "why": cause.why,
            "fix": cause.fix,
            "forever": cause.severity == "error",
        }
        for cause in log_causes.every()
        if cause.id.startswith("k3s-")
    ]


def hashes(secrets: Secrets) -> dict[str, str]:
    """By which the cluster's tokens are compared."""
    return {name: machines.digest(text) for name, text in tokens(secrets).items()}


def dry(
    options: Options, plan: Mapping[str, Any], states: Mapping[str, Any], marks: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Finding], dict[str, list[dict[str, str]]]]:
    """What `decide` refuses, and by machine what is not as it was made; tokens are compared by their hashes."""
    kept = marks.get(plan["first"], {}).get("marks", {})
    own = {"server": "token", "agent": "agent_token"}
    known = {role: kept.get(role) or kept.get(name, "") for role, name in own.items()}
    known = known if kept.get("agent_token") else {}
    rows, decision = decide(options, plan, states, known)
    hosts: Mapping[str, Any] = decision.get("hosts", {})
    return rows, {host: list(_drift(plan["hosts"][host], hosts[host], known, marks.get(host, {}))) for host in hosts}


def _drift(
    wanted: Mapping[str, Any], decided: Mapping[str, Any], hashes: Mapping[str, str], seen: Mapping[str, Any]
) -> Iterator[dict[str, str]]:
    for item in decided["missing"]:
        yield {"what": item["name"], "found": "not there, or not as it was installed", "expected": item["sha256"][:12]}
    for reason in decided["reasons"]:
        yield {"what": f"unit {wanted['service']}", "found": reason, "expected": "running as planned"}
    for path in seen.get("opened", ()):
        yield {"what": path, "found": "others can read it", "expected": "permissions 0600"}
    token = seen.get("marks", {}).get("token")
    if hashes and not wanted["first"] and token != hashes[wanted["role"]]:
        found = "another token" if token else "not there"
        yield {"what": paths.TOKEN, "found": found, "expected": "the cluster's"}


def decide(
    options: Options,
    plan: Mapping[str, Any],
    states: Mapping[str, Any],
    tokens: Mapping[str, str],  # their hashes, by role
    images: Sequence[str] = (),
) -> tuple[list[Finding], dict[str, Any]]:
    """What to do on every machine that was looked at; refuses them all together."""
    planned, first = plan["hosts"], plan["first"]
    states = {host: state for host, state in states.items() if "machine" in state}
    findings = [
        finding for host, state in states.items() for finding in judge.refusals(host, planned[host], state, options)
    ]
    if first not in states and not tokens:
        without = "no token of a cluster: it never ran there"
        findings.append(Finding(first, "K3s", without, "a cluster to join", f"run without --limit, or with {first}"))
    if errors(findings):
        return findings, {}
    missing = {host: judge.missing(state, options) for host, state in states.items()}
    if options.artifacts:
        findings += judge.held(options.artifacts, [item for items in missing.values() for item in items])
    findings += [*judge.doubts(options), *judge.unmirrored(options, images)]
    for host, state in states.items():
        findings += judge.warnings(host, state)
    hosts = {
        host: {"missing": missing[host], **_start(planned[host], state, options, tokens)}
        for host, state in states.items()
    }
    return findings, {
        "hosts": hosts,
        "sequence": judge.sequence(planned, hosts),
        "together": judge.together(planned, hosts),
        "first_starts": bool(hosts.get(first, {}).get("reasons")),
    }


def _start(
    wanted: Mapping[str, Any], state: judge.State, options: Options, tokens: Mapping[str, str]
) -> dict[str, Any]:
    """Why K3s is started on a machine, and what runs there now."""
    mark = {paths.TOKEN: tokens[wanted["role"]]} if tokens and not wanted["first"] else {}
    reasons = judge.reasons(wanted, state, options, mark)
    return {
        "reasons": reasons,
        "running": state["units"][wanted["service"]]["active"],
        "as_planned": reasons == [judge.unwell(wanted, state)],
    }


def tokens(secrets: Secrets) -> Mapping[str, str]:
    """The cluster's tokens; none in a dry run on bare machines."""
    known: Mapping[str, str] = secrets.get("tokens", {})
    return known if known.get("agent_passphrase") else {}
