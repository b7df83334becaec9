"""The table of docs/reference/claims.md: each claim, and which part judged it when (tests fill .build/judged.jsonl)."""

from __future__ import annotations

import argparse
import json
from typing import Any

import yaml

from testbed.base import names

CLAIMS, KEPT = names.REPO / "tests/rack/claims.yml", names.REPO / "tests/rack/judged.json"
SAID = names.REPO / ".build/judged.jsonl"
PAGE = names.REPO / "docs/reference/claims.md"
BEGIN, END = "<!-- claims: python -m testbed claims --keep -->", "<!-- claims end -->"
Said = dict[str, dict[str, Any]]


def claims() -> list[dict[str, Any]]:
    return list(yaml.safe_load(CLAIMS.read_text()))


def tests() -> set[str]:
    return {test for claim in claims() for test in (*_ours(claim), *claim["real"].values())}


def _ours(claim: dict[str, Any]) -> list[str]:
    """Nothing where only the part itself can judge."""
    return [claim["stand-in"]] if "stand-in" in claim else []


def known(nodeid: str, wanted: set[str]) -> str:
    """The name under which a claim names this test: with its parameters, or without."""
    bare = nodeid.split("[")[0]
    return nodeid if nodeid in wanted else bare if bare in wanted else ""


def said(lines: list[str]) -> Said:
    """The last word of each test; one of several parameters that failed is a failure of that run."""
    found: Said = {}
    for row in map(json.loads, lines):
        before = found.get(row["test"])
        same = before is not None and before["run"] == row["run"]
        passed = row["passed"] and (not same or bool(before and before["passed"]))
        found[row["test"]] = {"passed": passed, "date": row["date"], "commit": row["commit"], "run": row["run"]}
    return found


def merged() -> Said:
    kept: Said = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    fresh = said(SAID.read_text().splitlines()) if SAID.exists() else {}
    wanted = tests()
    both = {test: record for test, record in {**kept, **fresh}.items() if test in wanted}
    return {test: {key: record[key] for key in ("passed", "date", "commit")} for test, record in sorted(both.items())}


def table(records: Said) -> str:
    rows = ["| claim | judged by what we wrote | judged by the part itself |", "|--|--|--|"]
    for claim in claims():
        real = "; ".join(f"{part}: {_word(records.get(test))}" for part, test in claim["real"].items())
        ours = " ".join(_word(records.get(test)) for test in _ours(claim)) or "-"
        rows.append(f"| {claim['claim']} | {ours} | {real} |")
    return "\n".join(rows)


def _word(record: dict[str, Any] | None) -> str:
    return f"{'yes' if record['passed'] else '**no**'}, {record['date']} ({record['commit']})" if record else "not yet"


def page(text: str, records: Said) -> str:
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table(records)}\n{END}{rest.split(END)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m testbed claims", description=__doc__.split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="write docs/reference/claims.md and tests/rack/judged.json")
    parser.add_argument("--json", action="store_true", help="what each test said, as JSON")
    args = parser.parse_args()
    records = merged()
    if args.keep:
        KEPT.write_text(json.dumps(records, indent=1) + "\n")
        PAGE.write_text(page(PAGE.read_text(), records))
    print(json.dumps(records, indent=1) if args.json else table(records))
    return 0
