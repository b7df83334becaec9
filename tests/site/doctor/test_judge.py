"""What may go wrong while the doctor judges: one part that breaks is one line, and a cluster is waited for once."""

from __future__ import annotations

import io
from types import SimpleNamespace as NS
from typing import Any

import pytest
from urllib3.exceptions import NewConnectionError

from sparkloom.site import ansible
from sparkloom.site.client import Client
from sparkloom.site.doctor import parts, roles, run
from sparkloom.site.tasks import doctor
from tests.plugins.loading import context


def judge() -> Any:
    return doctor.Doctor(context(), ["multus", "gateway"])


def test_a_judge_that_breaks_is_a_line_of_the_verdict_and_the_next_part_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the old code: `ansible-playbook could not begin`."""
    made, names = judge(), []

    def result(asked: Any, task: roles.Task, api: Any) -> dict[str, Any]:
        names.append(task.role)
        raise ValueError("Invalid value for `architecture`, must not be `None`")

    monkeypatch.setattr(made, "_result", result)
    task = {role: roles.Task(role, "main", "Look", "cluster.multus_objects", {}, (), {}, role) for role in made.roles}
    asked = NS(tasks=lambda part: [task[part.role]], holds=lambda task: True, known={})
    made._walk(asked, [parts.Part("multus", "main"), parts.Part("gateway", "main")])
    assert names == ["multus", "gateway"]
    assert {event["result"]["msg"][:25] for event in made.seen} == {"ValueError: Invalid value"}


def test_a_cluster_that_was_away_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan has asked for twelve seconds already."""
    made, configuration = judge(), NS(retries=None)

    def call(*words: Any, **options: Any) -> None:
        raise NewConnectionError(None, "refused")  # type: ignore[arg-type]

    reached = Client(NS(api_client=NS(configuration=configuration, call_api=call)), "x")
    monkeypatch.setattr(doctor.client, "of", lambda cluster: reached)
    monkeypatch.setattr(doctor.client, "kubeconfig", lambda cluster: "/k")
    site = NS(kubernetes=NS(provider="k3s", kubeconfig=""), name="x")
    monkeypatch.setattr(ansible, "cluster", lambda task_vars: site)
    assert made._api(again=True) is None and configuration.retries is None
    assert made._api(again=False) is None and configuration.retries is False
    assert {(event["role"], event["outcome"]) for event in made.seen} == {
        ("multus", "failed"), ("model_serving", "failed"),
    }  # fmt: skip


def test_when_there_is_no_report_the_failure_is_told_and_not_the_recap() -> None:
    lines = (
        "TASK [doctor : Plan] ***\nfatal: [spark1]: FAILED! =>\n    Task failed: no\n\nPLAY RECAP ***\nspark1 : ok=1\n"
    )
    said: list[str] = []
    assert run._follow(io.StringIO(lines), said.append) == ["fatal: [spark1]: FAILED! =>", "Task failed: no"]
    assert len(said) == 1 and said[0].endswith("Plan\n")
    assert run._follow(io.StringIO("one\ntwo\n"), said.append) == ["one", "two"]
