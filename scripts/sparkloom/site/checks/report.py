"""The findings about all nodes together: as data for plays and files, and as text for people."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from sparkloom.base import amount
from sparkloom.base import table as tables
from sparkloom.base.finding import Finding, errors

# What a row calls the fields of a finding.
ROW = {"node": "where", "check": "rule", "found": "message", "expected": "expected", "change": "fix",
       "severity": "severity"}  # fmt: skip
WORDS = {"error": "FAIL", "warning": "warn", "info": "info"}
COLUMNS, LINES, MOST = 80, 24, 10  # a window, and the faults that it has room for
REACH = ("connection", "sudo", "python")  # the checks without which nothing else of a node is read


def as_dict(finding: Finding) -> dict[str, Any]:
    """One of the `rows` that a play registers and that preflight.json keeps."""
    return {said: getattr(finding, name) for said, name in ROW.items()}


def read(entry: Mapping[str, Any], *, where: str, area: str, group: str = "") -> Finding:
    """What `as_dict` gave, back from a play that the doctor listened to."""
    return Finding(**{name: entry[said] for said, name in ROW.items()} | {"where": where}, area=area, group=group)


def named(finding: Finding) -> str:
    return ": ".join(part for part in (finding.area, finding.group, finding.rule) if part)


def sentence(finding: Finding) -> str:
    """What was found, of what, and what was expected."""
    if not finding.expected:
        return f"{named(finding)}: {finding.message}"
    return f"{named(finding)}: found {finding.message}; expected {finding.expected}"


def table(findings: Iterable[Finding], every: Sequence[str] = ()) -> str:
    """One line of facts per finding and what to do under it; nodes with the same trouble share a block.

    `every`: all nodes that were asked, which are named one by one no more.
    """
    blocks: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        fact = f"{sentence(finding)}\n      -> {finding.fix}"
        blocks.setdefault((WORDS[finding.severity], fact), []).append(finding.where)
    return "\n".join(f"{mark}  {_where(nodes, every)}  {fact}" for (mark, fact), nodes in blocks.items())


def _where(nodes: Iterable[str], every: Sequence[str]) -> str:
    return "all" if every[1:] and {*nodes} == {*every} else ",".join(dict.fromkeys(nodes))


def verdict(findings: list[Finding], passed: str) -> dict[str, Any]:
    """One table for all nodes; it fails when any finding is an error."""
    failed, text = errors(findings), table(findings)
    if failed:
        nodes = len({finding.where for finding in failed})
        text = f"{amount.of(len(failed), 'check')} failed on {amount.of(nodes, 'node')}\n{text}"
    return {"failed": bool(failed), "msg": text or passed, "rows": [as_dict(finding) for finding in findings]}


Passed = Mapping[str, Collection[str]]  # by node, the checks that are no business of its kind


def grid(nodes: Sequence[str], checks: Sequence[str], findings: Iterable[Finding], passed: Passed) -> str:
    """Checks that do not hold everywhere, down, and nodes across, as many beside each other as a window is wide.

    `-` where a node could not be read, nothing where it is not asked.
    """
    worst: dict[tuple[str, str], str] = {}
    for finding in findings:
        if worst.get((finding.where, finding.rule)) != "FAIL":
            worst[finding.where, finding.rule] = WORDS[finding.severity]
    unread = {node for node in nodes for check in REACH if worst.get((node, check)) == "FAIL"}
    rows = []
    for check in (check for check in checks if any(check == rule for _, rule in worst)):
        usual = {
            n: "" if check in passed.get(n, ()) else "-" if n in unread and check not in REACH else "ok" for n in nodes
        }
        rows.append((check, *(worst.get((node, check), usual[node]) for node in nodes)))
    beside = max(1, (COLUMNS - max(map(len, checks))) // (max(map(len, (*nodes, "FAIL"))) + len(tables.GAP)))
    parts = [range(at, min(at + beside, len(nodes))) for at in range(0, len(nodes), beside)]
    lines = (
        tables.lines(("", *(nodes[n] for n in part)), [(row[0], *(row[n + 1] for n in part)) for row in rows])
        for part in parts
    )
    return "\n".join(chain.from_iterable(lines))


def report(nodes: Sequence[str], checks: Sequence[str], findings: list[Finding], passed: Passed | None = None) -> str:
    """A table of nodes and checks, then what must be mended, then what to know."""
    mend, warnings = _worst_first(checks, findings)
    if not findings:
        return f"all {len(checks)} checks hold on {amount.of(len(nodes), 'node')}"
    parts = [f"{len(checks)} checks on {amount.of(len(nodes), 'node')}:\n{grid(nodes, checks, findings, passed or {})}"]
    if mend:
        parts.append(
            f"must be mended ({len(mend)} on {amount.of(len({f.where for f in mend}), 'node')}):\n{table(mend, nodes)}"
        )
    if warnings:
        parts.append(f"worth knowing ({len(warnings)}):\n{table(warnings, nodes)}")
    return "\n\n".join(parts)


def screen(nodes: Sequence[str], checks: Sequence[str], findings: list[Finding]) -> str:
    """A window of it: each check on two lines, the worst first; what else it found, and what was expected, the report
    says."""
    mend, warnings = _worst_first(checks, findings)
    of: dict[tuple[str, str], list[Finding]] = {}
    for finding in (*mend, *warnings):
        of.setdefault((WORDS[finding.severity], named(finding)), []).append(finding)
    lines = [f"{len(checks)} checks on {amount.of(len(nodes), 'node')}: {len(mend)} to mend, {len(warnings)} to know"]
    for (mark, name), same in list(of.items())[:MOST]:
        facts = len({finding.message for finding in same})
        where = f"{_where([finding.where for finding in same], nodes)}  {name}{f' (1 of {facts})' if facts > 1 else ''}"
        lines += [f"{mark}  {where}: {same[0].message}", f"      do: {same[0].fix}"]
    more = [f"and {len(of) - MOST} more"] if len(of) > MOST else []
    return "\n".join([*(line if len(line) < COLUMNS else f"{line[: COLUMNS - 4]}..." for line in lines), *more])


def _worst_first(checks: Sequence[str], findings: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """What must be mended, then what to know; both begin with what keeps a node from being used at all."""
    order = {check: number for number, check in enumerate(checks)}
    ranked = sorted(findings, key=lambda finding: order.get(finding.rule, len(order)))
    return errors(ranked), [finding for finding in ranked if finding.severity == "warning"]


def secret(name: str, *, there: bool, differs: bool, expected: str) -> list[dict[str, str]]:
    """What a plugin that keeps a Secret tells: never what is in it."""
    found = "another content" if there else "not there"
    return [{"what": f"Secret {name}", "found": found, "expected": expected}] if differs else []


SAID = re.compile(r"ssh: (?:Could not resolve hostname|connect to host) (\S+?)(?: port (\d+))?: ([^;:.]+)")  # OpenSSH
CURE = "ansible_host and ansible_user in hosts.yml; is it switched on? -i names another inventory"


def unreached(node: str, said: str) -> Finding:
    if not (told := SAID.search(said)):
        return Finding(node, "connection", said, "a login over ssh", f"{CURE}; ssh-copy-id, if it wants a password")
    address, port, why = told.groups()
    reason = "name not found" if "resolve" in told[0] else why.strip()
    at = address if port in (None, "22") else f"{address} port {port}"
    return Finding(node, "connection", f"does not answer on SSH at {at} ({reason})", "", CURE)
