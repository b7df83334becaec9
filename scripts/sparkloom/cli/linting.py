"""`sparkloom lint`: every profile judged, unusable ones named, nothing hidden by the first failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs import profile as profiles
from sparkloom.judge import rules

UNREAD = "correct the file; nothing else of it was judged"
LIST = "serve"  # in the place of a profile's name: the inventory's list


@dataclass(slots=True)
class Linted:
    profiles: list[str]
    findings: list[dict[str, Any]] = field(default_factory=list)  # of the profiles that could be judged
    applied: set[str] = field(default_factory=set)  # rules that have to do with one of them
    assumed: dict[str, None] = field(default_factory=dict)  # of those that were named, each once
    unusable: list[tuple[str, Problem]] = field(default_factory=list)  # profile and what is wrong with its file

    def as_list(self) -> list[dict[str, Any]]:
        """Everything, for `--json`: what is unusable first, in the shape of a finding."""
        unread = [{"profile": name, **problem.finding(UNREAD).as_dict()} for name, problem in self.unusable]
        return [*unread, *self.findings]

    @property
    def rules(self) -> str:
        """What was looked at."""
        every = len(rules.every())
        return f"{every} rules, {every - len(self.applied)} do not apply"

    @property
    def exit_code(self) -> int:
        if self.unusable:
            return 2
        return 1 if any(finding["severity"] == "error" for finding in self.findings) else 0


def lint(names: Sequence[str], inventory: Path | None, overrides: Iterable[str], release: str | None) -> Linted:
    """Findings of the named profiles, or of all shipped ones; then also of what an inventory serves together."""
    cluster = case.cluster(inventory)
    linted = Linted(list(names) or profiles.names())
    for name in linted.profiles:
        try:
            judged = case.judge(name, cluster, overrides=overrides, release=release)
        except InputError as error:
            linted.unusable += [(name, problem) for problem in error.problems]
        else:
            linted.applied |= {rule.id for rule in rules.applying(judged.launch.view())}
            linted.findings += [{"profile": name, **finding.as_dict()} for finding in judged.findings]
            linted.assumed |= dict.fromkeys(map(str, judged.assumed if names else ()))
    if inventory and not names:
        _fleet(linted, inventory)
    return linted


def _fleet(linted: Linted, inventory: Path) -> None:
    """The list `serve:`: what is wrong in it, and whether it packs; its profiles' own findings stand above."""
    from sparkloom.inputs import serving
    from sparkloom.judge import fleet

    if not serving.has_list(inventory):
        return
    try:
        planned = case.fleet(inventory)
    except InputError as error:
        linted.unusable += [(LIST, problem) for problem in error.problems]
        return
    of_fleet = [finding for finding in planned.findings if finding.rule in fleet.RULES]
    linted.findings += [{"profile": LIST, **finding.as_dict()} for finding in of_fleet]
