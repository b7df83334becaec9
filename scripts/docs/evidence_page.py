"""docs/reference/evidence.md: how well the rules foresee the measured rows, also where they could not know them.

python -m scripts.docs.evidence_page > docs/reference/evidence.md
"""

from __future__ import annotations

import datetime
import hashlib
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sparkloom.base.repository import REPO
from sparkloom.judge import measured_rows, rules
from sparkloom.judge.measured_rows import Row, Tally

FOLDS = 5
STAMP = "*Generated "  # begins the one line that may differ without the page being stale


@dataclass(frozen=True, slots=True)
class Judged:
    """A row that ran, with what the rules said of it."""

    row: Row
    predicted: measured_rows.Prediction
    fired: tuple[str, ...]
    failed: bool


@cache
def judged(profiles: bool = True) -> tuple[Judged, ...]:
    """All rows that ran; without profiles, models are known by name only."""
    items = []
    for row in measured_rows.shipped():
        failed = measured_rows.failed(row)
        if failed is not None:
            predicted, fired = measured_rows.predict(measured_rows.view_of(row, profiles=profiles))
            items.append(Judged(row, predicted, tuple(fired), failed))
    return tuple(items)


def tally(items: Iterable[Judged], allowed: Callable[[str], bool] = lambda rule: True) -> Tally:
    """Counts, with only the allowed rules speaking."""
    result = Tally()
    for item in items:
        fires = any(allowed(rule) for rule in item.fired)
        result["fail" if fires else "ok" if item.fired else item.predicted, item.failed] += 1
    return result


Key = Callable[[Row], str]
SPLITS: dict[str, Key] = {
    "model": lambda row: str(row["model"]),
    "image": lambda row: str(row["image"]),
    "test log": lambda row: str(row["id"]).split("#")[0],
    f"{FOLDS} random folds": lambda row: f"fold {int(hashlib.sha256(str(row['id']).encode()).hexdigest(), 16) % FOLDS}",
}


def cross(key: Key) -> Tally:
    """Each group judged only by rules that also caught a failure outside of it: what the rest would have taught."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    caught: dict[str, Counter[str]] = defaultdict(Counter)
    for item in judged():
        groups[key(item.row)].append(item)
        for rule in item.fired if item.failed else ():
            caught[rule][key(item.row)] += 1
    total = Tally()
    for group, items in groups.items():
        total += tally(items, lambda rule, group=group: sum(caught[rule].values()) > caught[rule][group])  # type: ignore
    return total


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def shares(count: Tally) -> str:
    figures = count.figures()
    return f"{share(figures['recall'])} | {share(figures['precision'])}"


def split_table() -> str:
    lines = ["| left out | groups | recall | precision |", "|--|--|--|--|"]
    lines.append(f"| nothing | 1 | {shares(tally(judged()))} |")
    lines.append(f"| all profiles (models known by name only) | 1 | {shares(tally(judged(profiles=False)))} |")
    for name, key in SPLITS.items():
        groups, result = len({key(item.row) for item in judged()}), cross(key)
        lines.append(f"| {name} | {groups} | {shares(result)} |")
    return "\n".join(lines)


def model_table() -> str:
    lines = [
        "| model | ran | failed | foreseen | false alarms | recall | precision |",
        "|--|--|--|--|--|--|--|",
    ]
    for model in sorted({str(item.row["model"]) for item in judged()}, key=str.lower):
        count = tally(item for item in judged() if item.row["model"] == model)
        cells = (model, count.total(), count.failures, count["fail", True], count["fail", False], shares(count))
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def rule_table() -> str:
    caught, alone, wrong, models = Counter[str](), Counter[str](), Counter[str](), defaultdict[str, set[str]](set)
    for item in judged():
        for rule in item.fired:
            caught[rule] += item.failed
            alone[rule] += item.failed and len(item.fired) == 1
            wrong[rule] += not item.failed
            models[rule].add(str(item.row["model"]))
    lines = ["| rule | failures caught | caught by it alone | false alarms | models |", "|--|--|--|--|--|"]
    for rule in sorted(models, key=lambda rule: (-caught[rule], rule)):
        lines.append(f"| `{rule}` | {caught[rule]} | {alone[rule]} | {wrong[rule]} | {len(models[rule])} |")
    silent = [rule.id for rule in rules.every() if rule.severity == "error" and rule.id not in models]
    lines.append(f"\nErrors that no shipped row springs ({len(silent)}): {', '.join(f'`{rule}`' for rule in silent)}.")
    return "\n".join(lines)


def misses() -> str:
    lines = ["| row | ended | the log says | note |", "|--|--|--|--|"]
    for item in judged():
        wrong = (item.failed and item.predicted != "fail") or (not item.failed and item.predicted == "fail")
        if wrong:
            row = item.row
            name = str(row["id"]).removeprefix("TESTLOG_")
            known = f"foretold by {', '.join(item.fired)}" if item.fired else row.get("symptom") or ""
            lines.append(f"| {name} | {row['outcome']} | {known} | {row.get('note') or ''} |")
    return "\n".join(lines)


def text(stamp: str) -> str:
    whole = tally(judged())
    figures = whole.figures()
    values = {
        **figures,
        "stamp": stamp,
        "failures": whole.failures,
        "recall": share(figures["recall"]),
        "precision": share(figures["precision"]),
        "splits": split_table(),
        "models": model_table(),
        "rules": rule_table(),
        "misses": misses(),
    }
    return Path(__file__).with_name("evidence_page.md").read_text(encoding="utf-8").format_map(values)


def stamp() -> str:
    repository = REPO
    made = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=repository, capture_output=True, text=True)
    command = "python -m scripts.docs.evidence_page > docs/reference/evidence.md"
    return f"{STAMP}{datetime.date.today()} at commit {made.stdout.strip() or 'unknown'} by `{command}`.*"


if __name__ == "__main__":
    sys.stdout.write(text(stamp()))
