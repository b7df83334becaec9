"""What is changed in a cluster when a person stops a group, and starts it: one way, from a pod and from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkloom.onnode import stopping
from sparkloom.onnode.kube import MERGE
from sparkloom.onnode.now.groups import stopped
from sparkloom.onnode.now.seen import Seen

MAPS, SETS = "/api/v1/namespaces/home/configmaps", "/apis/apps/v1/namespaces/home/statefulsets"


class Api:
    """Keeps what it was asked for; `stops`: what the map says, None without one."""

    def __init__(self, stops: Mapping[str, str] | None = None) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.stops = stops

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        assert (path, query) == (MAPS, {"fieldSelector": "metadata.name=stopped"})
        return {"items": [] if self.stops is None else [{"data": self.stops}]}

    def change(self, method: str, path: str, content: Any, kind: str = "") -> Any:
        assert (kind == MERGE) == (method == "PATCH")
        self.asked.append((method, path, content))


def one(replicas: int | None, name: str = "glm-rank0", **notes: str) -> Seen:
    spec = {} if replicas is None else {"replicas": replicas}
    told = {f"sparkloom/{key}": text for key, text in notes.items()}
    return Seen({"metadata": {"name": name, "labels": {"sparkloom/profile": "glm"}, "annotations": told}, "spec": spec})


def test_who_and_when_are_said_before_the_pods_go_and_before_they_come() -> None:
    """A set is scaled and nothing else of it: who may change one may run anything as root on its node."""
    api, sets = Api({}), [one(1), one(1, "glm-rank1")]
    by = stopping.stop(api, "home", sets, "anna")
    assert re.fullmatch(r"anna, \d{4}-\d\d-\d\d \d\d:\d\d UTC", by)
    gone = {"spec": {"replicas": 0}}
    assert api.asked == [
        ("PATCH", f"{MAPS}/stopped", {"data": {"glm": by}}),
        ("PATCH", f"{SETS}/glm-rank0/scale", gone),
        ("PATCH", f"{SETS}/glm-rank1/scale", gone),
    ]
    for awake in (True, False):
        api.asked.clear()
        stopping.start(api, "home", sets[:1], awake=awake)
        assert api.asked == [
            ("PATCH", f"{MAPS}/stopped", {"data": {"glm": ""}}),
            ("PATCH", f"{SETS}/glm-rank0/scale", {"spec": {"replicas": int(awake)}}),
        ]


def test_the_map_is_made_by_the_first_who_stops_something() -> None:
    api = Api()
    by = stopping.stop(api, "home", [], "anna")
    stopping.note(api, "home", ["glm"], by)
    (_, (method, path, made)) = api.asked
    assert (method, path, made["metadata"]["name"], made["data"]) == ("POST", MAPS, "stopped", {"glm": by})
    assert made["metadata"]["labels"] == {"app.kubernetes.io/part-of": "sparkloom"}, "a teardown finds it"


def test_what_is_said_of_a_group_already_is_not_said_again() -> None:
    for stops, record, said in (({"glm": "anna"}, "anna", 0), ({}, "", 0), (None, "", 0), ({"glm": "anna"}, "", 1)):
        stopping.settle(api := Api(stops), "home", "glm", record)
        assert len(api.asked) == said


def test_a_group_of_which_a_pod_is_wanted_is_not_stopped() -> None:
    """Cut off half way, it is what it is; the same command again ends it."""
    by = {"glm": "anna"}
    assert stopped([one(0), one(0)], by) == "anna"
    assert stopped([one(0), one(1)], by) == "" == stopped([one(None)], by)
    assert stopped([one(0)], {}) == "" == stopped([], by)


def test_what_a_set_said_itself_counts_until_the_map_says_something() -> None:
    assert stopped([one(0, stopped="anna"), one(0)], {"chat": "bob"}) == "anna"
    assert stopped([one(0, stopped="anna")], {"glm": "bob"}) == "bob"
    assert stopped([one(0, stopped="anna")], {"glm": ""}) == ""
