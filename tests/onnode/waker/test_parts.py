"""What the program is made of, each for itself: figures of the router, and who holds the Lease."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom.onnode.kube import Refused, Unreached
from sparkloom.onnode.waker import lease, use
from sparkloom.onnode.waker.lease import Lease
from sparkloom.onnode.waker.state import Group
from sparkloom.onnode.waker.use import Counters
from tests.onnode.waker.test_state import group

GLM = Group(
    "nvidia--glm-5.3-flash", "nvidia--glm-5.3-flash", "glm", "nvidia--glm-5-3-flash.site", ("x",), 1, "", None, 1
)


def page(name: str, total: int, now: int = 0, healthy: int = 1) -> str:
    """As Envoy 1.40.0 writes it."""
    own = f'{{envoy_cluster_name="{name}"}}'
    return (
        f"envoy_cluster_upstream_rq_active_overflow{own} 7\nenvoy_cluster_upstream_rq_total{own} {total}\n"
        f"envoy_cluster_upstream_rq_active{own} {now}\nenvoy_cluster_upstream_rq_pending_active{own} 0\n"
        f"envoy_cluster_membership_healthy{own} {healthy}\n"
    )


def read(pages: dict[str, str | None]) -> use.Counts:
    return {pod: None if text is None else use.read(text) for pod, text in pages.items()}


def told(counters: Counters, pages: dict[str, str | None], of: Group = GLM) -> str:
    return counters.evidence((of,), read(pages))[of.name]


@pytest.mark.parametrize("name", [GLM.label, GLM.address.partition(".")[0]])
def test_a_group_is_found_under_its_name_without_dots(name: str) -> None:
    counters = Counters()
    assert told(counters, {"a": page(name, 3)}) == "used"
    assert told(counters, {"a": page(name, 3)}) == "idle"
    assert told(counters, {"a": page(name, 3, 1)}) == "used"
    assert told(counters, {"a": page(name, 4)}) == "used"


def test_every_router_that_names_a_group_must_find_it_healthy() -> None:
    chat, other = group("chat"), group("other")
    pages = {"a": page("chat", 1) + page("other", 1), "b": page("chat", 0, healthy=0), "c": None}
    assert not use.routed(chat, read(pages)) and use.routed(other, read(pages)) and use.routed(chat, {})


def test_a_router_that_is_made_anew_is_no_use_until_it_counts() -> None:
    counters, chat = Counters(), group("chat")
    told(counters, {"a": page("chat", 500)}, chat)
    assert told(counters, {"a": page("chat", 0)}, chat) == "idle"
    assert told(counters, {"b": page("chat", 0)}, chat) == "idle"
    assert told(counters, {"b": page("chat", 1)}, chat) == "used"
    assert told(counters, {"b": page("chat", 1), "c": page("chat", 0, 1)}, chat) == "used"


def test_requests_that_are_led_here_count_too() -> None:
    counters, chat = Counters(), group("chat")
    both = page("chat", 0) + page("chat+waker", 0, 1)
    assert told(counters, {"a": both}, chat) == "used"


def test_what_is_not_known_is_use() -> None:
    counters, chat = Counters(), group("chat")
    assert told(counters, {}, chat) == "used"
    assert told(counters, {"a": None}, chat) == "used"
    assert told(counters, {"a": page("other", 0)}, chat) == "used"
    assert told(counters, {"a": page("chat", 0), "b": None}, chat) == "used"
    assert use.either("idle", None) == use.either("used", 0) == "used"
    assert (use.either("idle", 0), use.either("idle", 1)) == ("idle", "perhaps")


def test_one_that_was_silent_for_a_look_is_held_against_what_it_said_before() -> None:
    counters, chat = Counters(), group("chat")
    told(counters, {"a": page("chat", 5)}, chat)
    told(counters, {"a": None}, chat)
    assert told(counters, {"a": page("chat", 5)}, chat) == "idle"


class Api:
    """A Lease as the API server keeps it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {"metadata": {"resourceVersion": "1"}}
        self.away = False
        self.between: Any = None  # done between a reading and what is written after it

    def api(self, path: str, query: Any, accept: str) -> Any:
        if self.away:
            raise Unreached("away")
        found = json.loads(json.dumps(self.kept))
        if self.between:
            now, self.between = self.between, None
            now()
        return found

    def change(self, method: str, path: str, content: Any, kind: str = "") -> Any:
        if content["metadata"]["resourceVersion"] != self.kept["metadata"]["resourceVersion"]:
            raise Refused(409, "conflict")
        version = str(int(self.kept["metadata"]["resourceVersion"]) + 1)
        self.kept = {**content, "metadata": {"resourceVersion": version}}
        return self.kept


class Two:
    def __init__(self) -> None:
        self.now, self.api = 100.0, Api()
        self.first, self.second = (Lease(self.api, "site", name, lambda: self.now) for name in ("first", "second"))


def test_one_holds_the_lease_and_the_other_takes_it_when_it_ends() -> None:
    two = Two()
    two.first.renew()
    two.second.renew()
    assert two.first.mine and not two.second.mine
    two.now += lease.SURE
    assert not two.first.mine, "not sure of it any more, long before the other one may have it"
    two.second.renew()
    assert not two.second.mine
    two.now += lease.LASTS
    two.second.renew()
    assert two.second.mine
    two.first.renew()
    assert not two.first.mine


def test_one_that_is_renewed_is_never_taken() -> None:
    two = Two()
    for _ in range(20):
        two.first.renew()
        two.second.renew()
        two.now += 4
        assert not two.second.mine


def test_who_leaves_gives_it_up_at_once() -> None:
    two = Two()
    two.first.renew()
    two.first.release()
    two.second.renew()
    assert two.second.mine and not two.first.mine
    two.first.renew()
    assert two.second.mine and not two.first.mine


def test_two_that_write_at_once_are_not_both_in_charge() -> None:
    two = Two()
    two.api.between = two.second.renew
    with pytest.raises(Unreached):
        two.first.renew()
    assert two.second.mine and not two.first.mine


def test_without_the_api_nobody_is_in_charge_for_long() -> None:
    two = Two()
    two.first.renew()
    two.api.away = True
    with pytest.raises(Unreached):
        two.first.renew()
    assert two.first.mine
    two.now += lease.SURE
    assert not two.first.mine
    two.first.release()  # and is no error
