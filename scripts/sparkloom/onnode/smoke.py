"""One streamed answer from a served model: the proof that it serves, with its own figures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from sparkloom.onnode import sse

PROMPT = "In one sentence: why does a cluster need a fast network between its nodes?"


@dataclass(slots=True)
class Answer:
    model: str
    text: str = ""
    reasoning: str = ""
    tokens: int = 0
    first_token_ms: float = 0.0
    tokens_per_second: float = 0.0

    def figures(self) -> str:
        return f"{self.tokens} tokens at {self.tokens_per_second:.1f} tok/s, first after {self.first_token_ms:.0f} ms"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class NoAnswer(Exception):
    """The engine did not stream a token; the message says what came instead."""


def ask(
    connect: Callable[[], HTTPConnection],
    say: Callable[[str], None],
    *,
    prompt: str = PROMPT,
    max_tokens: int = 64,
    key: str | None = None,
    model: str = "",
) -> Answer:
    """Streams one short chat completion of `model`, else of the first there is; `say` receives the text as it arrives,
    thinking apart from the answer."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        with closing(connect()) as connection:
            answer = Answer(model or _model(connection, headers))
        body = {
            "model": answer.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        with closing(connect()) as connection:
            begun = time.monotonic()
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            _read(connection, answer, begun, say)
    except (OSError, HTTPException) as error:
        raise NoAnswer(f"no answer from the engine's port: {error or type(error).__name__}") from None
    if not answer.text + answer.reasoning:
        raise NoAnswer(f"{answer.model} answered without a single token")
    return answer


def _model(connection: HTTPConnection, headers: dict[str, str]) -> str:
    connection.request("GET", "/v1/models", headers=headers)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise NoAnswer(f"GET /v1/models answered {response.status}: {body[:200].decode(errors='replace')}")
    return str(json.loads(body)["data"][0]["id"])


def _read(connection: HTTPConnection, answer: Answer, begun: float, say: Callable[[str], None]) -> None:
    response = connection.getresponse()
    if response.status != 200:
        raise NoAnswer(f"the engine answered {response.status}: {response.read(300).decode(errors='replace')}")
    first = last = 0.0
    chunks, thinking = 0, False
    for event in _events(response):
        if failed := sse.error(event):
            raise NoAnswer(f"the engine broke off after {chunks} chunks: {failed}")
        for choice in event.get("choices") or []:
            said = [one for one in sse.texts(choice.get("delta") or {}) if one[0] != "tool"]
            if said:
                last = time.monotonic()
                first = first or last
                chunks += 1
            for channel, text in said:
                if thinking != (channel == "reasoning"):  # a model that only answers needs no heads
                    thinking = not thinking
                    say("[thinking] " if thinking else "\n[answer] ")
                say(text)
                if thinking:
                    answer.reasoning += text
                else:
                    answer.text += text
        answer.tokens = (event.get("usage") or {}).get("completion_tokens") or answer.tokens
    answer.tokens = answer.tokens or chunks
    answer.first_token_ms = (first - begun) * 1000
    if last > first:
        answer.tokens_per_second = (answer.tokens - 1) / (last - first)


def _events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Every event up to [DONE]; a stream that ends otherwise was cut, whatever came before."""
    came = 0
    try:
        for data in _data(response):
            if data == sse.DONE:
                return
            event = json.loads(data)
            came += 1
            yield event
        why = "it ended without [DONE]"
    except (OSError, HTTPException) as error:
        why = str(error) or type(error).__name__
    except ValueError:
        why = "within an event"
    raise NoAnswer(f"the stream was cut after {came} events: {why}")


def _data(response: HTTPResponse) -> Iterator[bytes]:
    events = sse.Events()
    for line in response:
        yield from events.feed(line)
    yield from events.finish()
