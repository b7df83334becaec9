"""What the program is made of, each for itself: figures of the router, bodies, heads, and who holds the Lease."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkloom.onnode.kube import Refused, Unreached
from sparkloom.onnode.waker import lease, use, wire
from sparkloom.onnode.waker.body import Body, Full, Room, streams
from sparkloom.onnode.waker.lease import Lease
from sparkloom.onnode.waker.told import Group
from sparkloom.onnode.waker.use import Counters
from sparkloom.onnode.waker.wire import Wrong
from tests.onnode.waker.test_state import group

GLM = Group(
    "nvidia--glm-5.3-flash", "nvidia--glm-5.3-flash", "glm", "nvidia--glm-5-3-flash.site", 1, ("x",), (), 1, "", None, 1
)


def page(name: str, total: int, now: int = 0, more: str = "") -> str:
    """As Envoy 1.40.0 writes it; of a name with a dot, what is behind that goes into the series' own."""
    own = f'{{envoy_cluster_name="{name}"}}'
    return (
        f"envoy_cluster_{more}upstream_rq_active_overflow{own} 7\nenvoy_cluster_{more}upstream_rq_total{own} {total}\n"
        f"envoy_cluster_{more}upstream_rq_active{own} {now}\nenvoy_cluster_{more}upstream_rq_pending_active{own} 0\n"
    )


def told(counters: Counters, pages: dict[str, str | None], of: Group = GLM) -> str:
    return counters.evidence((of,), pages)[of.name]


@pytest.mark.parametrize(
    ("name", "more"),
    [("nvidia--glm-5", "3_flash_"), ("nvidia--glm-5-3-flash", ""), ("nvidia--glm-5_3-flash", "")],
    ids=["by-its-name", "by-its-label", "by-another-spelling"],
)
def test_a_group_is_found_however_the_router_spells_it(name: str, more: str) -> None:
    counters = Counters()
    assert told(counters, {"a": page(name, 3, more=more)}) == "used"
    assert told(counters, {"a": page(name, 3, more=more)}) == "idle"
    assert told(counters, {"a": page(name, 3, 1, more=more)}) == "used"
    assert told(counters, {"a": page(name, 4, more=more)}) == "used"


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


WORDS = st.text(max_size=6) | st.sampled_from(["stream", '"stream": true', "\\"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(WORDS, JSON, max_size=5), st.booleans(), st.booleans())
def test_a_stream_is_found_as_a_parser_finds_it(body: dict[str, Any], plain: bool, spaced: bool) -> None:
    text = json.dumps(body, ensure_ascii=plain, indent=1 if spaced else None).encode()
    assert streams(text) == (body.get("stream") is True)


@given(st.binary(max_size=200))
def test_what_is_no_json_is_no_stream_or_any_but_never_an_error(body: bytes) -> None:
    assert streams(body) in (True, False)


def test_a_long_body_is_read_fast() -> None:
    text = b'{"messages": "' + b"a\\n" * 3_000_000 + b'", "stream": true, "prompt": [' + b"1," * 1_000_000 + b"1]}"
    assert streams(text)


def test_bodies_have_room_together_and_give_it_back() -> None:
    room = Room(100)
    first, second = Body(room, 80), Body(room, 80)
    first.expect(60)
    first.add(b"x" * 60)
    with pytest.raises(Full):
        second.expect(50)
    with pytest.raises(Wrong) as wrong:
        second.add(b"x" * 81)
    assert wrong.value.status == 413
    first.end()
    first.end()
    second.expect(80)
    assert room.taken == 80
    second.end()
    assert room.taken == 0


def parsed(*lines: str) -> wire.Head:
    return wire.parsed("\r\n".join(("POST /v1/x HTTP/1.1", *lines, "", "")).encode())


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: +5",), ("Content-Length: 5, 5",), ("Content-Length: 1", "Content-Length: 1"),
        ("Transfer-Encoding: gzip, chunked",), ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"), ("bad header: x",), (" folded: x",), ("no colon",),
    ],
)  # fmt: skip
def test_a_head_that_two_would_read_in_two_ways_is_none(lines: tuple[str, ...]) -> None:
    with pytest.raises(Wrong):
        assert parsed(*lines).length is None


def test_what_is_meant_for_this_connection_is_not_passed_on() -> None:
    found = parsed("Connection: close, X-Mine", "X-Mine: 1", "TE: trailers", "Expect: 100-continue", "X-Theirs: 2")
    assert found.passed_on == [("x-theirs", "2")]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.integers(1, 30))
def test_chunks_are_read_however_they_are_split(parts: list[bytes], cut: int) -> None:
    text = b"".join(map(wire.chunk, parts)) + wire.LAST

    async def read() -> bytes:
        reader = asyncio.StreamReader(limit=wire.HEAD)
        for start in range(0, len(text), cut):
            reader.feed_data(text[start : start + cut])
        reader.feed_eof()
        return b"".join([piece async for piece in wire.pieces(reader, parsed("Transfer-Encoding: chunked"))])

    assert asyncio.run(read()) == b"".join(parts)


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
