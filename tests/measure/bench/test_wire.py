"""HTTP and server-sent events: any split of the bytes gives the same events, and nonsense is named."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkloom.measure.bench import shape
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.onnode.sse import Events

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=12)
CUTS = st.lists(st.integers(min_value=0, max_value=4000), max_size=30)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(places)]


def chunked(pieces: list[bytes], extension: bytes = b"") -> bytes:
    body = b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


@given(PIECES, CUTS, st.sampled_from([b"", b";a=b", b" "]), st.binary(max_size=10))
def test_a_chunked_body_is_the_same_however_it_arrives(
    pieces: list[bytes], cuts: list[int], extension: bytes, behind: bytes
) -> None:
    response, body = Response(), b""
    for part in split(chunked(pieces, extension) + behind, cuts):
        body += b"".join(response.feed(part))
    assert (body, response.done, response.keep_alive, response.left) == (b"".join(pieces), True, True, behind)


@given(st.binary(max_size=200), CUTS, st.booleans())
def test_a_counted_body_and_one_until_the_end(body: bytes, cuts: list[int], counted: bool) -> None:
    head = HEAD + (b"Content-Length: %d\r\n" % len(body) if counted else b"") + b"\r\n"
    response, found = Response(), b""
    for part in split(head + body, cuts):
        found += b"".join(response.feed(part))
    assert response.done is counted and response.close() is True and found == body


@given(st.binary(max_size=300))
def test_no_bytes_at_all_break_the_parser(data: bytes) -> None:
    for start in (b"", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"):
        response = Response()
        try:
            response.feed(start + data)
        except Garbled as error:
            assert len(str(error)) < 300


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"Content-Encoding: gzip\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1_0\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Garbled):
        Response().feed(data)


def test_an_interim_answer_is_passed_over_and_a_cut_is_seen() -> None:
    response = Response()
    assert response.feed(b"HTTP/1.1 100 Continue\r\n\r\n" + chunked([b"x"])) == [b"x"]
    cut = Response()
    cut.feed(chunked([b"abc"])[:-9])
    assert cut.close() is False


LINES = st.lists(
    st.tuples(st.sampled_from([b"data", b"event", b"id", b""]), st.text("ab:{} \u00e9", max_size=8)), max_size=12
)


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), CUTS)
def test_events_are_the_same_however_they_arrive(
    lines: list[tuple[bytes, str]], ending: bytes, cuts: list[int]
) -> None:
    expected, stream = [], b""
    for name, value in lines:
        text = value.encode()
        stream += name + b": " + text + ending + ending
        if name == b"data":
            expected.append(text)
    events, found = Events(), []
    for part in split(stream, cuts):
        found += events.feed(part)
    assert found + events.finish() == expected


def test_several_lines_of_data_are_one_event_and_comments_none() -> None:
    events = Events()
    assert events.feed(b"\xef\xbb\xbf: hello\ndata: a\ndata:b\n\ndata: {}\n\n: ping\n\n") == [b"a\nb", b"{}"]
    assert events.feed(b"data: last") == [] and events.finish() == [b"last"]


def read(**event: object) -> shape.Chunk:
    return shape.read(json.dumps(event).encode())


def test_a_role_is_no_token_and_reasoning_is_one() -> None:
    assert read(choices=[{"delta": {"role": "assistant", "content": ""}}]).texts == []
    both = read(choices=[{"delta": {"reasoning_content": "x", "reasoning": "x", "content": None}}])
    assert both.texts == [("reasoning", "x")]
    assert read(choices=[{"delta": {"content": "y"}, "finish_reason": "stop"}])[:2] == ([("content", "y")], "stop")
    assert read(choices=[], usage={"completion_tokens": 3}).usage == {"completion_tokens": 3}
    assert read(error={"message": "no\nroom"}).error == "no room"


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"choices": [1]}', b'{"choices": [{"delta": 3}]}', b"\xff"])
def test_no_chunk_is_quoted(data: bytes) -> None:
    with pytest.raises(shape.NoChunk):
        shape.read(data)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_a_line_ending_may_be_cut_in_two(ending: bytes) -> None:
    stream = b"data: a" + ending + b"data: b" + ending + ending
    for cut in range(len(stream) + 1):
        events = Events()
        assert events.feed(stream[:cut]) + events.feed(stream[cut:]) + events.finish() == [b"a\nb"]
