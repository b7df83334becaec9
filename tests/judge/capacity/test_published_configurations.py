"""What somebody measured did fit: plan may doubt it where a Spark's free memory is not known, and never refuses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom import case
from sparkloom.inputs import profile
from sparkloom.inputs.profile import Evidence


def measured() -> list[tuple[str, int]]:
    return [
        (name, at)
        for name in profile.names()
        for at, entry in enumerate(profile.load(name).profile.evidence)
        if entry.status == "measured" and entry.numbers and same_place(name, entry)
    ]


def same_place(name: str, entry: Evidence) -> bool:
    said = (entry.config or {}).get("parallel")
    return said is None or said == profile.load(name).profile.launch.parallel.as_dict()


def overrides(entry: Evidence) -> list[str]:
    flags = {key: value for key, value in (entry.config or {}).items() if key not in ("parallel", "transport")}
    return [f"launch.{key}={_word(value)}" for key, value in flags.items() if not key.startswith("env.")]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(("name", "at"), measured())
def test_what_was_served_is_not_refused(name: str, at: int) -> None:
    entry = profile.load(name).profile.evidence[at]
    found = case.judge(name, overrides=overrides(entry)).findings
    refused = [f"{finding.rule}: {finding.message}" for finding in found if finding.rule == "does-not-fit"]
    assert refused == []
