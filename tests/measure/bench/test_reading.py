"""What is read quickly, by its bytes, is what the parsers read: every difference between events included."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkloom.measure.bench import shape
from sparkloom.measure.bench.exchange import Exchange, Limits
from sparkloom.measure.bench.request import Request

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXTS = st.lists(st.sampled_from('ab "\\\n\t{}:,0\x00\x7f\u00e9\u4e2d\U0001f600\ud83d'), max_size=6).map("".join)


def event(
    delta: dict[str, Any], more: dict[str, Any] | None = None, *, ascii_only: bool = True, created: int = 7
) -> bytes:
    data = {"id": "x", "created": created, "choices": [{"delta": delta, "logprobs": None, "finish_reason": None}]}
    text = json.dumps({**data, **(more or {})}, ensure_ascii=ascii_only)
    return b"data: " + text.encode(errors="surrogatepass") + b"\n\n"


@st.composite
def events(draw: st.DrawFn) -> bytes:
    text = draw(TEXTS)
    delta = draw(
        st.sampled_from(
            [{"content": text}] * 6
            + [{"reasoning_content": text}] * 3
            + [
                {"content": text, "reasoning_content": None},
                {"reasoning_content": text, "reasoning": text},
                {"role": "assistant", "content": ""},
                {"content": text, "reasoning_content": "and"},
                {"tool_calls": [{"function": {"arguments": text}}]},
                {"note": '"content": "no"', "content": text},
                {"inner": {"content": text}, "content": "same"},
            ]
        )
    )
    more = draw(st.sampled_from([{}] * 8 + [{"usage": {"completion_tokens": 3}}, {"error": {"message": "no"}}]))
    return event(delta, more, ascii_only=draw(st.booleans()), created=draw(st.sampled_from([7] * 9 + [8])))


CLOSING = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def framed(parts: Iterable[bytes], style: bytes = b"%x") -> list[bytes]:
    return [style % len(part) + b"\r\n" + part + b"\r\n" for part in parts]


def outcome(arrivals: list[bytes], portion: int, *, learns: bool) -> tuple[Any, ...]:
    request = Request(0, "p", b"", 0.0)
    exchange = Exchange(request, Limits(), lambda _: None)
    if not learns:
        exchange._trust = -1e9
    stamps = [1.0 + number / 50 for number in range(len(arrivals))]
    for start in range(0, len(arrivals), portion):
        for arrival, stamp in zip(arrivals[start : start + portion], stamps[start : start + portion], strict=True):
            exchange.feed(arrival, stamp)
        exchange.read()
    exchange.closed(99.0)
    exchange.judge()
    seen = (list(request.times), list(request.sizes), list(request.counted), request.tail)
    return (*seen, request.finish, request.usage, request.error, request.detail, request.ended, request.verdict)


@given(st.lists(events(), max_size=40), st.integers(1, 20), st.sampled_from([b"%x", b"%X", b"%04x"]), st.data())
def test_the_quick_way_and_the_parsers_agree(
    parts: list[bytes], portion: int, style: bytes, data: st.DataObject
) -> None:
    if data.draw(st.booleans(), label="other line endings"):
        parts = [part.replace(b"\n\n", b"\r\n\r\n") for part in parts]
    if data.draw(st.booleans(), label="no blank after the colon"):
        parts = [part.replace(b"data: ", b"data:", 1) for part in parts]
    chunked = data.draw(st.booleans(), label="chunked")
    arrivals = [HEAD, *framed(parts, style)] if chunked else [CLOSING, *parts]
    if data.draw(st.booleans(), label="joined or cut"):
        whole, place = b"".join(arrivals), 0
        arrivals = []
        while place < len(whole):
            size = data.draw(st.integers(1, 400))
            arrivals.append(whole[place : place + size])
            place += size
    if data.draw(st.booleans(), label="ended"):
        arrivals += [*framed([b"data: [DONE]\n\n"]), b"0\r\n\r\n"] if chunked else [b"data: [DONE]\n\n"]
    assert outcome(arrivals, portion, learns=True) == outcome(arrivals, portion, learns=False)


@given(st.lists(st.sampled_from([0, 1, 2, 9, 40, 250]), min_size=2, max_size=30), st.data())
def test_one_changed_byte_is_seen(lengths: list[int], data: st.DataObject) -> None:
    """Broken sizes, broken JSON, broken UTF-8: never taken for text."""
    arrivals = [HEAD, *framed([event({"content": "w" * size}) for size in lengths])]
    which = data.draw(st.integers(1, len(arrivals) - 1))
    at = data.draw(st.integers(0, len(arrivals[which]) - 1))
    changed = bytes([data.draw(st.sampled_from(list(b'\x00\x1f"\\{}0f1A\n\r :')) | st.integers(0, 255))])
    arrivals[which] = arrivals[which][:at] + changed + arrivals[which][at + 1 :]
    assert outcome(arrivals, 8, learns=True) == outcome(arrivals, 8, learns=False)


@pytest.mark.parametrize(
    "inside", [b"\x00", b"a\x00b", b"\x1f", b'"', b"\\", b"\\x", b"\xff", b"\xc3", b'", "b": "', b'"}', b""]
)
def test_what_is_no_inside_of_a_string_is_no_text(inside: bytes) -> None:
    before, after = event({"content": "TEXT"}).split(b"TEXT")
    parts = [before + word + after for word in (b"one", b"two", inside, b"three")]
    arrivals = [HEAD, *framed(parts)]
    assert outcome(arrivals, 8, learns=True) == outcome(arrivals, 8, learns=False)


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("ending", [b"\n\n", b"\r\n\r\n"])
def test_most_of_a_stream_is_read_without_parsing(
    monkeypatch: pytest.MonkeyPatch, chunked: bool, ending: bytes
) -> None:
    parsed = []
    monkeypatch.setattr("sparkloom.measure.bench.shape._decode", lambda text: parsed.append(text) or json.loads(text))
    parts = [event({"content": f"word{n} \n"}, created=n // 100)[:-2] + ending for n in range(400)]
    arrivals = [HEAD, *framed(parts)] if chunked else [CLOSING, *parts]
    assert len(outcome(arrivals, 16, learns=True)[0]) == 400
    assert len(parsed) <= 12, "one event and one proof for each second of the engine's clock"


def test_events_that_never_fit_are_not_studied_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    studied = []
    monkeypatch.setattr(
        "sparkloom.measure.bench.exchange.learn",
        lambda *args, **more: studied.append(args) or shape.learn(*args, **more),
    )
    arrivals = [HEAD, *framed([event({"content": "w"}, created=n) for n in range(640)])]
    assert len(outcome(arrivals, 16, learns=True)[0]) == 640 and len(studied) <= 14


def test_arrivals_wait_to_be_read_together_but_never_the_end() -> None:
    request = Request(0, "p", b"", 0.0)
    exchange = Exchange(request, Limits(), lambda _: None)
    exchange.sent(1.0, 0.0, again=False)
    words = framed([event({"content": "w"})] * 40)
    assert exchange.feed(HEAD, 1.0), "headers are read at once"
    exchange.read()
    assert [exchange.feed(word, 2.0) for word in words[:3]] == [False] * 3
    assert not exchange.waits(2.4) and exchange.waits(2.5)
    exchange.expired(2.6)
    assert not exchange.over and not request.times, "what waits to be read is no silence"
    assert True in [exchange.feed(word, 2.6) for word in words[3:]], "and not more than a portion of them"
    for last in (b"5\r\n: hi\n\r\n", b"e\r\ndata: [DONE]\n\n\r\n", b"0\r\n\r\n", b"0\r\n", b"\r\n"):
        assert exchange.feed(last, 2.7)
    exchange.closed(3.0, "")
    assert len(request.times) == 40 and request.ok


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize(
    ("last", "error", "detail"),
    [
        (b"data: [DONE]\n\n", None, ""),
        (b"", "cut", "without [DONE]"),
        (b'data: {"object": "error", "message": "EngineDeadError"}\n\ndata: [DONE]\n\n', "engine-error", "EngineDead"),
        (b'event: error\ndata: {"message": "rank 2"}\n\ndata: [DONE]\n\n', "engine-error", "rank 2"),
        (b'error: {"message": "ggml broke"}\n\ndata: [DONE]\n\n', "engine-error", "ggml broke"),
        (b'data: {"choices": [{"finish_reason": "abort"}]}\n\ndata: [DONE]\n\n', "engine-error", "abort"),
    ],
)
def test_what_a_dead_rank_leaves_is_no_success(last: bytes, error: str | None, detail: str, learns: bool) -> None:
    """On the old code a reason to finish was as good as [DONE], and an error's name or an abort was not read."""
    finish = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    parts = [event({"content": f"w{n} "}) for n in range(8)] + ([finish] if not detail or error == "cut" else [])
    arrivals = [HEAD, *framed([*parts, *([last] if last else [])]), b"0\r\n\r\n"]
    seen = outcome(arrivals, 3, learns=learns)
    assert seen[6] == error and detail in seen[7]


def test_an_error_s_name_in_a_piece_of_its_own_is_kept() -> None:
    arrivals = [HEAD, *framed([event({"content": "w"}), b"event: error\n", b'data: {"message": "rank 2"}\n\n'])]
    assert outcome(arrivals, 1, learns=True)[6:8] == ("engine-error", "rank 2")


def test_thinking_and_answer_are_not_glued() -> None:
    """On the old code the end of an answer that is kept read `so four.Four ranks.`"""
    parts = [event({"reasoning_content": "so four."}), event({"content": "Four "}), event({"content": "ranks."})]
    arrivals = [HEAD, *framed([*parts, b"data: [DONE]\n\n"]), b"0\r\n\r\n"]
    assert outcome(arrivals, 2, learns=True)[3] == "so four.\n[answer]\nFour ranks."
