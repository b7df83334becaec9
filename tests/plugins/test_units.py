"""Units are told only what they need to be told."""

from __future__ import annotations

import pytest

from tests.plugins.loading import module

units = module("units")
U = "sparkloom-memory-guard.service"


@pytest.mark.parametrize(
    ("run", "enabled", "active", "written", "told"),
    [
        (True, True, True, False, []),
        (True, False, False, False, [("enable", U), ("start", U)]),
        (True, True, False, True, [("start", U)]),
        (True, True, True, True, [("restart", U)]),
        (True, False, True, True, [("enable", U), ("restart", U)]),
        (False, True, True, False, [("stop", U), ("disable", U)]),
        (False, False, False, True, []),
    ],
)
def test_steps(
    monkeypatch: pytest.MonkeyPatch, run: bool, enabled: bool, active: bool, written: bool, told: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(units, "is_", lambda word, unit: {"enabled": enabled, "active": active}[word])
    assert units.steps({"name": U, "run": run, "now": True}, written) == told


def test_one_that_is_for_the_next_boot_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "is_", lambda word, unit: False)
    assert units.steps({"name": U, "run": True, "now": False}, written=True) == [("enable", U)]
