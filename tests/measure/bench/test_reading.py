"""A stream is read as it was meant, however it arrives and however it ends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkloom.measure.bench.ask import Ask, Limits
from sparkloom.measure.bench.request import Reader, Request

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXTS = st.lists(st.sampled_from('ab "\\\n\t{}:,0\x00\x7f\u00e9\u4e2d\U0001f600\ud83d'), max_size=6).map("".join)


def event(
    delta: dict[str, Any], more: dict[str, Any] | None = None, *, ascii_only: bool = True, created: int = 7
) -> bytes:
    data = {"id": "x", "created": created, "choices": [{"delta": delta, "logprobs": None, "finish_reason": None}]}
    text = json.dumps({**data, **(more or {})}, ensure_ascii=ascii_only)
    return b"data: " + text.encode(errors="surrogatepass") + b"\n\n"


def framed(parts: Iterable[bytes], style: bytes = b"%x") -> list[bytes]:
    return [style % len(part) + b"\r\n" + part + b"\r\n" for part in parts]


def outcome(arrivals: list[bytes]) -> tuple[Any, ...]:
    request = Request(0, "p", b"", 0.0)
    reader = Reader(request)
    reader.read(arrivals, [1.0 + number / 50 for number in range(len(arrivals))])
    reader.closed(99.0)
    reader.judge()
    seen = (list(request.times), list(request.sizes), list(request.counted), request.reasoning_chars, request.tail)
    return (*seen, request.finish, request.usage, request.error, request.detail, request.ended, request.verdict)


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=20), st.booleans(), st.lists(st.integers(1, 400), min_size=1))
def test_texts_are_the_same_however_they_arrive(texts: list[str], ascii_only: bool, sizes: list[int]) -> None:
    parts = [*(event({"content": text}, ascii_only=ascii_only) for text in texts), b"data: [DONE]\n\n"]
    whole = [HEAD, *framed(parts), b"0\r\n\r\n"]
    text, cut = b"".join(whole), []
    for size in itertools.cycle(sizes):
        if not text:
            break
        cut.append(text[:size])
        text = text[size:]
    first, second = outcome(whole), outcome(cut)
    lone = not ascii_only and any("\ud83d" in text for text in texts)  # half a character, which no UTF-8 has
    assert first[7] == second[7] == ("garbled" if lone else None)
    if not lone:
        assert first[1] == second[1] == list(map(len, texts)) and first[4] == second[4]


def test_what_waits_to_be_read_is_no_silence() -> None:
    request = Request(0, "p", b"", 0.0)
    ask = Ask(request, Limits(stall_s=0.1), lambda _: None)
    ask.sent(1.0, 0.0, again=False)
    for data in (HEAD, *framed([event({"content": "w"})] * 40)):
        ask.feed(data, 2.0)
    ask.expired(9.0)
    assert not ask.over and not request.times
    for last in (b"5\r\n: hi\n\r\n", b"e\r\ndata: [DONE]\n\n\r\n", b"0\r\n\r\n"):
        ask.feed(last, 2.7)
    ask.closed(3.0, "")
    assert len(request.times) == 40 and request.ok


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
def test_what_a_dead_rank_leaves_is_no_success(last: bytes, error: str | None, detail: str) -> None:
    """On the old code a reason to finish was as good as [DONE], and an error's name or an abort was not read."""
    finish = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    parts = [event({"content": f"w{n} "}) for n in range(8)] + ([finish] if not detail or error == "cut" else [])
    arrivals = [HEAD, *framed([*parts, *([last] if last else [])]), b"0\r\n\r\n"]
    seen = outcome(arrivals)
    assert seen[7] == error and detail in seen[8]


def test_an_error_s_name_in_a_piece_of_its_own_is_kept() -> None:
    arrivals = [HEAD, *framed([event({"content": "w"}), b"event: error\n", b'data: {"message": "rank 2"}\n\n'])]
    assert outcome(arrivals)[7:9] == ("engine-error", "rank 2")


def test_thinking_and_answer_are_not_glued() -> None:
    """On the old code the end of an answer that is kept read `so four.Four ranks.`"""
    parts = [event({"reasoning_content": "so four."}), event({"content": "Four "}), event({"content": "ranks."})]
    arrivals = [HEAD, *framed([*parts, b"data: [DONE]\n\n"]), b"0\r\n\r\n"]
    assert outcome(arrivals)[4] == "so four.\n[answer]\nFour ranks."
