"""What is changed in a cluster when a person stops a group, and starts it: one way, from a pod and from outside."""

from __future__ import annotations

import re
from typing import Any

from sparkloom.onnode import stopping
from sparkloom.onnode.kube import MERGE
from sparkloom.onnode.now.groups import stopped
from sparkloom.onnode.now.seen import Seen

SETS = "/apis/apps/v1/namespaces/home/statefulsets"


class Api:
    """Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def change(self, method: str, path: str, content: Any, kind: str) -> Any:
        assert kind == MERGE
        self.asked.append((method, path, content))


def one(replicas: int | None, **notes: str) -> Seen:
    spec = {} if replicas is None else {"replicas": replicas}
    return Seen({"metadata": {"annotations": {f"sparkloom/{key}": text for key, text in notes.items()}}, "spec": spec})


def test_who_and_when_go_with_the_pods_in_one_change_and_away_again() -> None:
    api = Api()
    by = stopping.stop(api, "home", ["glm-rank0", "glm-rank1"], "anna")
    assert re.fullmatch(r"anna, \d{4}-\d\d-\d\d \d\d:\d\d UTC", by)
    noted = {"spec": {"replicas": 0}, "metadata": {"annotations": {"sparkloom/stopped": by}}}
    assert api.asked == [("PATCH", f"{SETS}/glm-rank0", noted), ("PATCH", f"{SETS}/glm-rank1", noted)]
    api.asked.clear()
    stopping.start(api, "home", ["glm-rank0"], awake=True)
    stopping.start(api, "home", ["glm-rank0"], awake=False)
    assert [content["spec"]["replicas"] for _, _, content in api.asked] == [1, 0]
    assert all(content["metadata"]["annotations"] == {"sparkloom/stopped": None} for _, _, content in api.asked)


def test_who_may_only_scale_scales() -> None:
    api = Api()
    stopping.scale(api, "home", "glm-rank0", 1)
    assert api.asked == [("PATCH", f"{SETS}/glm-rank0/scale", {"spec": {"replicas": 1}})]


def test_a_group_of_which_a_pod_is_wanted_is_not_stopped() -> None:
    """Cut off half way, it is what it is; the same command again ends it."""
    assert stopped([one(0, stopped="anna"), one(0)]) == "anna"
    assert stopped([one(0, stopped="anna"), one(1)]) == "" == stopped([one(None, stopped="anna")])
    assert stopped([one(0)]) == "" == stopped([])
