"""Findings from the events of a dry run, and one table over nodes and areas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sparkloom.base import amount, document
from sparkloom.base import table as tables
from sparkloom.base.finding import Finding, errors
from sparkloom.base.repository import REPO
from sparkloom.site.checks.report import REACH, read, table, unreached
from sparkloom.site.doctor import drift, groups
from sparkloom.site.doctor.events import CLUSTER, Event
from sparkloom.site.doctor.parts import TABLE

AREAS: dict[str, list[str]] = TABLE["areas"]
OF_A_PROFILE = re.compile(
    r"(?:playbooks/(?:preflight|models|serve|gateway)\.yml|--tags (?:models|serve|gateway))(?! -e)"
)
# What `--json` calls the fields of a finding.
SHOWN = {"node": "where", "area": "area", "what": "rule", "found": "message", "expected": "expected", "fix": "fix",
         "severity": "severity"}  # fmt: skip
NO_DETAIL = "deserialization failed"  # Ansible's words when something else than the module answered


@dataclass(frozen=True, slots=True)
class Report:
    nodes: Sequence[str]
    findings: list[Finding]
    unread: frozenset[tuple[str, str]] = frozenset()  # node and area that could not be read to the end

    @property
    def good(self) -> bool:
        return not errors(self.findings)

    @property
    def verdict(self) -> str:
        if self.good:
            nodes, findings = amount.of(len(self.nodes), "node"), amount.of(len(self.findings), "finding")
            return f"as planned on {nodes}: {', '.join(AREAS)}; {findings}"
        return f"{amount.of(len(errors(self.findings)), 'thing')} not as planned"

    def cells(self) -> dict[str, dict[str, str]]:
        """node -> area -> ok, warning, a number of findings, or ? where nothing could be read."""
        shared = [CLUSTER] if any(f.where == CLUSTER for f in self.findings) else []
        return {node: {area: self._cell(node, area) for area in AREAS} for node in [*self.nodes, *shared]}

    def _cell(self, node: str, area: str) -> str:
        mine = [f for f in self.findings if f.where == node and f.area == area]
        if failed := len(errors(mine)):
            return str(failed)
        warned = any(finding.severity == "warning" for finding in mine)
        return "?" if (node, area) in self.unread else "warning" if warned else "ok"

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": "as planned" if self.good else "findings",
            "nodes": self.cells(),
            "findings": [_as_dict(finding) for finding in self.findings],
        }

    def text(self) -> str:
        text = [*self.table(), "", *filter(None, [table(self.findings)]), self.verdict]
        return "\n".join(line.rstrip() for line in text)

    def table(self, wide: int = 0) -> list[str]:
        """Of nodes and areas, for a window of so many columns."""
        cells = self.cells()
        return tables.lines(("node", *AREAS), [(node, *cells[node].values()) for node in cells], wide)


def _as_dict(finding: Finding) -> dict[str, Any]:
    """As `doctor --json` gives it."""
    told = {said: getattr(finding, name) for said, name in SHOWN.items()}
    return {**told, "group": finding.group} if finding.group else told


def report(events: Sequence[Event], nodes: Sequence[str], every: Sequence[str] = ()) -> Report:
    """`every`: the groups that were asked, of a site that serves several."""
    known: set[tuple[str, str, str]] = set()
    findings: dict[Finding, None] = {}
    for event in events:
        for finding in _findings(event, nodes):
            # A node that does not answer fails every task with the same words: once is enough.
            # Two roles that look at one thing say the same rows.
            again = event["outcome"] == "failed" or event["result"].get("rows")
            said = (finding.where, finding.message, finding.group)
            if not again or said not in known:
                findings.setdefault(finding)
            known.add(said)
    words = next((str(event["result"]["words"]) for event in events if event["result"].get("words")), "")
    lost = {finding.where for finding in findings if finding.rule in REACH}
    # Of a node that cannot be asked, that is all there is to say.
    kept = groups.merged(findings, every)
    told = [finding for finding in kept if finding.rule in REACH or finding.where not in lost]
    meant = [replace(finding, fix=_meant(finding.fix, words)) for finding in told]
    return Report(nodes, meant, frozenset(_unread(events, findings)))


def _meant(fix: str, words: str) -> str:
    """A cure that serves means the profile that is judged here, which may be another than the inventory's."""
    return OF_A_PROFILE.sub(lambda found: f"{found[0]} {words}", fix) if words else fix


def _unread(events: Sequence[Event], findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Silence is not health: what a task that failed would have said is unknown, and of a lost node everything is."""
    for event in events:
        if event["outcome"] == "failed" and not (event["result"].get("rows") or event["result"].get("findings")):
            yield event["host"], _area(event)
    lost = [event["host"] for event in events if event["outcome"] == "unreachable"]
    lost += [finding.where for finding in findings if finding.rule in REACH]
    yield from ((node, area) for node in lost for area in AREAS)


def _findings(event: Event, nodes: Sequence[str]) -> Iterator[Finding]:
    area, result, group = _area(event), event["result"], event.get("group", "")
    node = event["host"] if event["host"] in nodes else CLUSTER
    if event["outcome"] == "unreachable":
        yield replace(unreached(node, _words(event)), area="hosts")
    elif result.get("rows"):
        for entry in result["rows"]:
            yield read(entry, where=entry["node"] if entry["node"] in nodes else CLUSTER, area=area, group=group)
    elif result.get("findings"):
        for entry in result["findings"]:
            yield Finding(CLUSTER, entry["rule"], entry["message"], "none", entry["fix"], area=area, group=group)
    elif event["outcome"] == "failed":
        name = event["task"]
        yield Finding(node, name, _words(event), "an answer", _mends(event), area=area, group=group)
    elif event["outcome"] == "changed":
        where = CLUSTER if "differing" in result else node
        for what, message, expected in drift.items(event):
            yield Finding(where, what, message, expected, _mends(event), area=area, group=group)


def _words(event: Event) -> str:
    """The first lines of what a failed task said, without the node's name, which stands beside it."""
    result = event["result"]
    text, errors = str(result.get("msg") or ""), str(result.get("module_stderr") or "")
    lines = [line.strip() for line in (errors if errors and NO_DETAIL in text else text or errors).splitlines()]
    return " ".join(filter(None, lines))[:300] or "nothing"


def _area(event: Event) -> str:
    """A task file that is called as an area is of it; else the area of the playbook that applies the role."""
    if event["area"] in AREAS:
        return event["area"]
    stem = next(iter(playbooks().get(event["role"], ())), "")
    return next((area for area, stems in AREAS.items() if stem in stems), "hosts")


def _mends(event: Event) -> str:
    """The playbook that applies the role, and of several the one that has to do with the area."""
    stems = playbooks().get(event["role"], [])
    fitting = [stem for stem in stems if stem in AREAS[_area(event)]] or stems
    if not fitting:
        return "what it says; `ansible-playbook playbooks/doctor.yml -vvv` says more"
    return f"playbooks/{fitting[0]}.yml puts it right (site.yml --tags {fitting[0]})"


@lru_cache(maxsize=1)
def playbooks() -> dict[str, list[str]]:
    """Role -> the playbooks of site.yml that apply it."""
    applied: dict[str, list[str]] = {}
    for entry in document.own((REPO / "site.yml").read_text()):
        path = REPO / entry["import_playbook"]
        for play in document.own(path.read_text()):
            for role in play.get("roles", ()):
                applied.setdefault(role["role"] if isinstance(role, dict) else role, []).append(path.stem)
    return applied
