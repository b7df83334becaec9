"""The step that takes out of the cluster: the whole site's, or one group's, and what is recorded to run afterwards."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom.site.tasks import teardown as tasks
from tests.plugins.loading import context

NO = dict.fromkeys(("serving", "cluster", "fabric", "nodes", "weights"), False)
TOLD = {"functions": {"spark1": []}, "kernels": ["/srv/cache/chat-1"], "own": {"name": "chat", "labels": ["chat"],
        "also": [["ConfigMap", "served"]]}}  # fmt: skip


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparkloom import case

    monkeypatch.setattr(tasks.ansible, "cluster", lambda _: case.cluster())
    monkeypatch.setattr(tasks.ansible, "listed", lambda _: None)
    monkeypatch.setattr(tasks, "_gone", lambda _: False)
    monkeypatch.setattr(tasks, "_silent", lambda _: "")


def planned(group: str = "", **consent: bool) -> dict[str, Any]:
    return tasks.plan(context({"ansible_run_tags": ["all"]}), {**NO, **consent}, group)  # type: ignore[typeddict-item]


def test_the_plan_of_the_whole_has_every_function_and_all_kernels() -> None:
    told = planned(serving=True)
    assert told["own"] == {} and all(told["functions"].values())
    assert told["kernels"] == [str(Path(told["store"]).parent / "cache")]


def test_the_plan_of_one_group_has_its_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.one_group, "to_end", lambda cluster, inventory, word: TOLD if word == "chat" else {})
    told = planned("chat")
    assert {key: told[key] for key in TOLD} == TOLD and told["provider"] == "k3s"
    assert "ends one group alone" in planned("chat", fabric=True)["msg"]


@pytest.mark.parametrize("own", [{}, TOLD["own"]])
def test_what_ends_and_what_is_recorded_then(monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]) -> None:
    did: list[Any] = []
    taker = NS(gone=["StatefulSet x"], dry=False)
    monkeypatch.setattr(tasks, "_taker", lambda *_: taker)
    monkeypatch.setattr(tasks.teardown, "group", lambda taker, labels, also: did.append((labels, also)))
    monkeypatch.setattr(tasks.teardown, "serving", lambda taker: did.append("all"))
    monkeypatch.setattr(tasks.planning, "keep", lambda cluster: did.append("kept"))
    result = tasks.serving(context(), own)
    assert did == [(["chat"], {("ConfigMap", "served")}) if own else "all", "kept"]
    assert result["changed"] and result["msg"] == "StatefulSet x"
    taker.dry = True
    tasks.serving(context(), own)
    assert did.count("kept") == 1, "a dry run records nothing"


def test_a_cluster_whose_api_is_gone_goes_from_its_nodes_with_both_consents(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the old code nothing could be taken away: each step asked the API, and waited for it."""
    why = "the cluster's API cannot be reached: Connection refused"
    monkeypatch.setattr(tasks, "_silent", lambda _: why)
    monkeypatch.setattr(tasks, "_taker", lambda *_: pytest.fail("asked all the same"))
    for one in ("serving", "cluster"):
        refused = planned(**{one: True})
        assert refused["failed"] and why in refused["msg"]
        assert "-e teardown_serving=true -e teardown_cluster=true" in refused["msg"]
    assert planned(fabric=True)["silent"] == "", "of the nodes alone, and nobody asks"
    told = planned(serving=True, cluster=True)
    assert told["silent"] == why
    asked = tasks.others(context(), {"spark1": []}, False, why)
    assert asked["failed"] and f"namespaces and objects that nobody can name now: {why}" in asked["msg"]
    assert "teardown_others=true" in asked["msg"] and not tasks.others(context(), {"spark1": []}, True, why)["changed"]
    assert tasks.serving(context(), {}, why)["msg"] == why and not tasks.networks(context(), why)["multus_stays"]


def test_a_cluster_of_somebody_else_is_left_until_its_api_answers() -> None:
    both = {"serving": True, "cluster": True}
    assert "not ours, so its API must answer first" in tasks.teardown.unheard("refused", both, ours=False)
    assert tasks.teardown.unheard("", both, ours=False) == tasks.teardown.unheard("refused", NO | both, ours=True) == ""
