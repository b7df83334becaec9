"""The table of what judged which claim: made from what tests said, and its tests exist."""

from __future__ import annotations

import json
import re

import pytest

from testbed.face import claims
from tests.places import REPO


def test_each_test_of_a_claim_exists() -> None:
    for nodeid in claims.tests():
        path, _, name = nodeid.split("[")[0].partition("::")
        assert re.search(rf"^def {name}\(", (REPO / path).read_text(), re.M), nodeid


def test_the_page_shows_what_is_kept() -> None:
    text = claims.PAGE.read_text()
    assert claims.page(text, json.loads(claims.KEPT.read_text())) == text, (
        "run: .venv/bin/python -m testbed claims --keep"
    )


def test_one_parameter_that_failed_is_a_failure() -> None:
    row = {"test": "a", "date": "2026-11-23", "commit": "c"}
    lines = [json.dumps(row | {"passed": passed, "run": run}) for passed, run in ((False, 1), (True, 1))]
    assert not claims.said(lines)["a"]["passed"]
    assert claims.said([*lines, json.dumps(row | {"passed": True, "run": 2})])["a"]["passed"]


@pytest.mark.parametrize(
    ("nodeid", "name"), [("x::a[1]", "x::a"), ("x::b[t]", "x::b[t]"), ("x::b[u]", ""), ("x::c", "")]
)
def test_a_test_is_known_with_its_parameters_or_without(nodeid: str, name: str) -> None:
    assert claims.known(nodeid, {"x::a", "x::b[t]"}) == name
