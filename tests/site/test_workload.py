"""What runs beside the engines: waited for until it is new and ready, named with its cause when it is not."""

from __future__ import annotations

from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.site import workload

ROUTER = {"kind": "Deployment", "metadata": {"name": "router"}}
HOSTS = {"kind": "DaemonSet", "metadata": {"name": "hosts"}}
SECRET = {"kind": "Secret", "metadata": {"name": "router"}}


def deployment(replicas: int, updated: int, available: int, *, seen: bool = True) -> Any:
    status = NS(observed_generation=2 if seen else 1, replicas=replicas, updated_replicas=updated,
                available_replicas=available)  # fmt: skip
    return of(NS(replicas=1), status)


def daemons(wanted: int, updated: int | None, available: int | None, *, seen: bool = True) -> Any:
    status = NS(observed_generation=2 if seen else None, desired_number_scheduled=wanted,
                updated_number_scheduled=updated, number_available=available)  # fmt: skip
    return of(NS(), status)


def of(spec: Any, status: Any) -> Any:
    spec.selector = NS(match_labels={"app": "one"})
    return NS(metadata=NS(generation=2), spec=spec, status=status)


def pod(*, waiting: str = "", message: str = "", unplaced: str = "", restarts: int = 0, ready: bool = False) -> Any:
    state = NS(waiting=NS(reason=waiting, message=message) if waiting else None)
    status = NS(name="one", state=state, restart_count=restarts)
    conditions = [NS(type="Ready", status="True")] if ready else []
    conditions += (
        [NS(type="PodScheduled", status="False", message=unplaced, reason="Unschedulable")] if unplaced else []
    )
    return NS(
        metadata=NS(name="one-1", deletion_timestamp=None),
        spec=NS(node_name=None if unplaced else "spark2", node_selector=None, containers=[NS(image="proxy:1")]),
        status=NS(conditions=conditions, container_statuses=None if unplaced else [status]),
    )


class Cluster:
    """Each look at a workload takes the next of its states; the last one stays."""

    def __init__(self, pods: list[Any], **states: list[Any]) -> None:
        self.states, self.listed, self.now = states, pods, 0.0
        self.said: list[str] = []

    def workload(self, kind: str, name: str) -> Any:
        of_it = self.states[name]
        return of_it.pop(0) if len(of_it) > 1 else of_it[0]

    def pods(self, labels: dict[str, str]) -> list[Any]:
        assert labels == {"app": "one"}
        return self.listed

    def warnings(self) -> dict[str, str]:
        return {}

    def tail(self, pod: str, lines: int, *, previous: bool = False) -> list[str]:
        return ["cannot bind"] if previous else []

    def wait(self, *objects: dict[str, Any], timeout: float = 60) -> str:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return workload.wait(self, objects, timeout, self.said.append, clock=lambda: self.now, sleep=sleep)


def test_all_pods_of_all_are_waited_for() -> None:
    found = Cluster(
        [pod()], router=[deployment(1, 1, 0), deployment(1, 1, 1)], hosts=[daemons(4, 4, 3), daemons(4, 4, 4)]
    )
    assert found.wait(SECRET, ROUTER, HOSTS) == "router, hosts: ready after 1 s"


@pytest.mark.parametrize(
    "early",
    [
        pytest.param(deployment(1, 1, 1, seen=False), id="the controller has not looked yet"),
        pytest.param(deployment(2, 1, 2), id="the old one is still there"),
        pytest.param(deployment(1, 0, 1), id="only the old one is ready"),
    ],
)
def test_what_stood_before_is_not_what_was_applied(early: Any) -> None:
    with pytest.raises(InputError):
        Cluster([], router=[early]).wait(ROUTER, timeout=3)
    assert "ready after" in Cluster([], router=[early, deployment(1, 1, 1)]).wait(ROUTER)


def test_a_daemon_that_nobody_counted_yet_is_not_there() -> None:
    with pytest.raises(InputError):
        Cluster([], hosts=[daemons(0, None, None, seen=False)]).wait(HOSTS, timeout=3)


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        (pod(waiting="ImagePullBackOff", message="Back-off pulling"),
         "its image proxy:1 does not come to spark2: Back-off pulling; versions.yml (group_vars/all)"),
        (pod(unplaced="0/4 nodes are available: 4 node(s) didn't find available persistent volumes to bind."),
         "no room for it on any node: 0/4 nodes are available: 4 node(s) didn't find available persistent volumes"),
        (pod(restarts=3), "one ended 3 times; its last words: cannot bind"),
        (pod(), "its pod one-1 starts"),
    ],
)  # fmt: skip
def test_what_does_not_stand_is_named_with_its_cause(broken: Any, cause: str) -> None:
    """On the old code a Prometheus without a volume was no failure at all, and another's one a bare time-out."""
    found = Cluster([pod(ready=True), broken], router=[deployment(1, 1, 0)])
    with pytest.raises(InputError) as refused:
        found.wait(ROUTER, timeout=30)
    assert f"router: 0 of 1 ready, {cause}" in str(refused.value)
    assert found.now == 31 and len(found.said) == 3 and cause in found.said[0] and "of 30 s" in found.said[0]


def test_a_doctor_is_told_of_what_is_there_and_does_not_stand() -> None:
    found = Cluster([pod(restarts=3)], router=[deployment(1, 1, 0)], hosts=[None])
    (finding,) = workload.late(found, [ROUTER, HOSTS])
    assert (finding.rule, finding.expected) == ("router", "all")
    assert finding.message == "0 of 1 ready, one ended 3 times; its last words: cannot bind"
