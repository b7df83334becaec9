"""The table of incidents: each has a source, and names tests that there are."""

from __future__ import annotations

import ast
import re

from tests.places import REPO

PAGE = (REPO / "docs/reference/first-week.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines()[4:] if line[:2] == "| "]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SOURCE = re.compile(r"\[([\w.-]+/[\w.-]+) (\d+)\]\(https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)\)")


def test_twenty_incidents_have_a_public_source_and_each_is_told_before_and_now() -> None:
    rows = [row for row in ROWS if row[0] != "incident"]
    assert all(len(row) == 4 and all(row) for row in rows)
    sources = [SOURCE.findall(row[0]) for row in rows]
    assert len(list(filter(None, sources))) >= 20
    assert all((one[0], one[1]) == (one[2], one[3]) for found in sources for one in found), "text and address are one"
    assert all(found or "(rack only)" in row[0] for row, found in zip(rows, sources, strict=True))
    assert all(NAMED.search(row[3]) and not NAMED.sub("", row[3]).strip(", ") for row in rows)


def test_each_test_that_is_named_is_there() -> None:
    named = NAMED.findall(PAGE)
    there = {file: {node.name for node in ast.walk(ast.parse((REPO / file).read_text()))
                    if isinstance(node, ast.FunctionDef)} for file, _ in named}  # fmt: skip
    assert [f"{file}::{test}" for file, test in named if test not in there[file]] == []
