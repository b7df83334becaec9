"""Judging memory that must be back: by what each node said last, whoever asked it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.site.ending import Ending
from tests.plugins import loading


def judged(hostvars: dict[str, Any]) -> dict[str, Any]:
    module = loading.action("sparkloom_record")
    action = module.ActionModule.__new__(module.ActionModule)
    task_vars = {"hostvars": hostvars, "groups": {"sparks": ["a", "b"]}, "inventory_hostname": "a"}
    asked = {"registered": "m", "before": {"a": 110.0, "b": 110.0}, "slack": 8}
    found: dict[str, Any] = action._memory(asked, task_vars)
    return found


def answer(node: str, available: float) -> dict[str, Any]:
    memory = {"available_gib": available, "total_gib": 121.0, "resident_gib": 4.0, "largest": [], "waited": 5.0}
    return {"item": node, "memory": memory}


def test_each_node_says_it_for_itself() -> None:
    found = judged({"a": {"m": {"results": [answer("a", 109)]}}, "b": {"m": {"results": [answer("b", 109)]}}})
    assert not found.get("failed") and found["now"] == {"a": 109, "b": 109}
    found = judged({"a": {"m": {"results": [answer("a", 109)]}}, "b": {"m": {"results": [answer("b", 60)]}}})
    assert found["failed"] and "b  memory is back" in found["msg"]


def test_after_a_failure_the_one_host_that_goes_on_asks_for_all() -> None:
    late = {"results": [answer("a", 109), answer("b", 60)]}
    found = judged({"a": {"m": late}, "b": {"m": {"results": [answer("b", 109)]}}})
    assert found["failed"] and "b  memory is back" in found["msg"]


def test_the_last_line_of_a_run_reads_what_a_proved_start_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    module = loading.action("sparkloom_record")
    action = module.ActionModule.__new__(module.ActionModule)
    monkeypatch.setattr(module.ansible, "cluster", lambda task_vars: None)
    monkeypatch.setattr(module.client, "of", lambda cluster: SimpleNamespace(pods=lambda labels: []))
    for name, answer in (("read", {}), ("write", True), ("digest", "")):
        monkeypatch.setattr(module.served, name, lambda *args, _answer=answer: _answer)
    monkeypatch.setattr(module.leftovers, "take", lambda reached, profile: [])
    told = {"profile": "glm", "model": "m", "engine": "sglang", "release": "0.5.13", "image": "image"}
    asked = {"told": told, "labels": {"sparkloom/profile": "glm"}, "config_hash": "h", "seconds": 3.0}
    ending = Ending()
    ending.take("sparkloom_record", action._good({**asked, "transport": "roce: both", "policy": "", "memory": {}}, {}))
    assert ending.serves() == "glm serves (roce: both)"
