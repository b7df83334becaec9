"""The one verdict on a launch that `plan` and `import` give: will it start, how sure that is, what would make it surer.

docs/reference/exit-status.md has the rule as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sparkloom.base.assumption import Assumption
from sparkloom.base.finding import Finding, errors
from sparkloom.judge import rules
from sparkloom.judge.flags import UNDECIDED

STARTS, SHOULD, MAY_NOT, WILL_NOT = "starts", "should start", "may not start", "will not start"
ORDER = (STARTS, SHOULD, MAY_NOT, WILL_NOT)  # as somebody who chooses wants them
FILE = "file-of-the-author"
GOOD = (STARTS, SHOULD)  # nothing that is known speaks against it
TIGHT = "near-guard-floor"  # the rule that knows how much must stay free; as a warning it says that too little does
RANGE = "only at the better end of what is known of memory does it fit"
BENCH = "sparkloom bench, once it serves"


class Start(NamedTuple):
    verdict: str
    why: str
    sure: str
    surer: str


def start(
    findings: Sequence[Finding], fits: bool | None, assumed: Iterable[Assumption], measured: bool = False
) -> Start:
    """`fits` is about memory alone, None where a range or a missing fact decides. `measured`: this very launch was."""
    memory = next((one.instead for one in assumed if one.about == "memory"), "")
    decisive = [one for one in assumed if one.decides and not measured]
    ours = {rule.id for rule in rules.every() if rule.ours}
    refused = [finding for finding in errors(findings) if finding.rule in ours]
    wrong = [finding for finding in errors(findings) if finding.rule not in ours]
    undecided = [finding for finding in findings if finding.rule in (UNDECIDED, FILE)]
    tight = [finding for finding in findings if finding.rule == TIGHT]
    if refused and not wrong and fits is not False:
        other = start([finding for finding in findings if finding not in refused], fits, assumed, measured)
        why = f": {other.why}" if other.why else ""
        sure = f"by Sparkloom's own rule {refused[0].rule}, not by the engine; with its fix: {other.verdict}{why}"
        return Start(WILL_NOT, f"refused here: {_first(refused[0].message)}", sure, other.surer)
    if wrong or fits is False:
        why, by = (_first(wrong[0].message), wrong[0].rule) if wrong else ("it does not fit", "does-not-fit")
        return Start(WILL_NOT, why, f"certain, by {by}", "")
    if undecided and not measured:
        first, _, sure = undecided[0].message.partition("; ")
        return Start(MAY_NOT, _first(first), sure or "not known here", "")
    if decisive:
        guess, count = decisive[0], f"{len(decisive)} guesses decide" if decisive[1:] else "a guess decides"
        told = guess.why if guess.about == "facts" else f"{guess.what}: {guess.why}"
        why = "its release is a guess" if guess.about == "release" else _first(told)
        return Start(MAY_NOT, why, count, guess.instead)
    if fits is None:
        return Start(MAY_NOT, RANGE, "computed", memory)
    if any(finding.severity == "warning" for finding in tight):
        return Start(MAY_NOT, _first(tight[0].message), "computed", memory)
    if measured:
        return Start(STARTS, "", "measured as it stands, on other Sparks", memory or BENCH)
    return Start(SHOULD, "", "computed; nobody measured it as it stands", BENCH)


def _first(text: str) -> str:
    """Its first statement: the finding itself, or the list of what is assumed, says the rest."""
    return text.partition("; ")[0].partition(". ")[0]
