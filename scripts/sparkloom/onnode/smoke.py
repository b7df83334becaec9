"""One streamed answer from a served model: the proof that it serves, with its own figures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

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
) -> Answer:
    """Streams one short chat completion; `say` receives the text as it arrives."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        with closing(connect()) as connection:
            answer = Answer(_model(connection, headers))
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
    chunks = 0
    for event in _events(response):
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            spoken, thought = delta.get("content") or "", delta.get("reasoning_content") or delta.get("reasoning") or ""
            if spoken or thought:
                last = time.monotonic()
                first = first or last
                chunks += 1
                answer.text += spoken
                answer.reasoning += thought
                say(spoken or thought)
        answer.tokens = (event.get("usage") or {}).get("completion_tokens") or answer.tokens
    answer.tokens = answer.tokens or chunks
    answer.first_token_ms = (first - begun) * 1000
    if last > first:
        answer.tokens_per_second = (answer.tokens - 1) / (last - first)


def _events(lines: Any) -> Iterator[dict[str, Any]]:
    for raw in lines:
        line = raw.decode(errors="replace").strip()
        if line.startswith("data:"):
            if (data := line[5:].strip()) == "[DONE]":
                return
            event = json.loads(data)
            if "error" in event:
                raise NoAnswer(f"the engine broke off: {event['error']}")
            yield event
    raise NoAnswer("the stream broke off before its end")
