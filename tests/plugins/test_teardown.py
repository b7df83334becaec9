"""The step that takes out of the cluster: the whole site's, or one group's, and what is recorded to run afterwards."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest

from tests.plugins import loading

MODULE = loading.action("sparkloom_teardown")
NO = dict.fromkeys(("serving", "cluster", "fabric", "nodes", "weights"), False)
TOLD = {"functions": {"spark1": []}, "kernels": ["/srv/cache/chat-1"], "own": {"name": "chat", "labels": ["chat"],
        "also": [["ConfigMap", "served"]]}}  # fmt: skip


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    from sparkloom import case

    made = MODULE.ActionModule.__new__(MODULE.ActionModule)
    made._task = NS(check_mode=False)
    monkeypatch.setattr(MODULE.ansible, "cluster", lambda _: case.cluster())
    monkeypatch.setattr(MODULE.ansible, "listed", lambda _: None)
    monkeypatch.setattr(MODULE, "_gone", lambda _: False)
    return made


def planned(plugin: Any, group: str = "", **consent: bool) -> dict[str, Any]:
    asked = {"what": "plan", "group": group, "consent": {**NO, **consent}}
    return dict(plugin.work(asked, {"ansible_run_tags": ["all"]}))


def test_the_plan_of_the_whole_has_every_function_and_all_kernels(plugin: Any) -> None:
    told = planned(plugin, serving=True)
    assert told["own"] == {} and all(told["functions"].values())
    assert told["kernels"] == [str(Path(told["store"]).parent / "cache")]


def test_the_plan_of_one_group_has_its_own_alone(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE.one_group, "to_end", lambda cluster, inventory, word: TOLD if word == "chat" else {})
    told = planned(plugin, "chat")
    assert {key: told[key] for key in TOLD} == TOLD and told["provider"] == "k3s"
    assert "ends one group alone" in planned(plugin, "chat", fabric=True)["msg"]


@pytest.mark.parametrize("own", [{}, TOLD["own"]])
def test_what_ends_and_what_is_recorded_then(plugin: Any, monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]) -> None:
    did: list[Any] = []
    taker = NS(gone=["StatefulSet x"], multus_stays=False, dry=False)
    monkeypatch.setattr(plugin, "_taker", lambda _: taker)
    monkeypatch.setattr(MODULE.teardown, "group", lambda taker, labels, also: did.append((labels, also)))
    monkeypatch.setitem(MODULE.WORK, "serving", lambda taker: did.append("all"))
    monkeypatch.setattr(MODULE.planning, "keep", lambda cluster: did.append("kept"))
    result = plugin.work({"what": "serving", "own": own}, {})
    assert did == [(["chat"], {("ConfigMap", "served")}) if own else "all", "kept"]
    assert result["changed"] and result["msg"] == "StatefulSet x"
    taker.dry = True
    plugin.work({"what": "serving", "own": own}, {})
    assert did.count("kept") == 1, "a dry run records nothing"
