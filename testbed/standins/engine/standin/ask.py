"""From an OpenAI request to the pieces of its answer: thinking, words, tool calls, and where it ends."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from standin import text
from standin.config import Config
from standin.generate import Piece

THINKS_OFF = ("enable_thinking", "thinking")
CALL = "tool_call"


class BadRequest(Exception):
    """Status 400 with these words."""


@dataclass
class Question:
    seed: str
    prompt_tokens: int
    limit: int
    pieces: list[Piece] = field(default_factory=list)
    finish: str = "stop"
    tool: str | None = None  # name of the function that is called
    stream: bool = False
    usage: bool = False  # a last chunk with usage
    usage_always: bool = False


def chat(config: Config, body: dict[str, Any], context: int) -> Question:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("Messages cannot be empty." if messages == [] else "messages: Field required")
    question = _question(config, body, json.dumps(messages), context)
    wants = body.get("chat_template_kwargs") or {}
    thinks = config.reasoning and not any(wants.get(name) is False for name in THINKS_OFF)
    answer = _answer(config, body, question)
    share = max(1, min(len(answer) // 3, question.limit // 4, 120)) if thinks else 0
    thoughts = [("reasoning", piece) for piece in islice(text.tokens(question.seed + "thinks"), share)]
    _cut(question, thoughts + answer, bool(body.get("ignore_eos")))
    return question


def completion(config: Config, body: dict[str, Any], context: int) -> Question:
    prompt = body.get("prompt")
    if not prompt:
        raise BadRequest("prompt: Field required")
    question = _question(config, body, json.dumps(prompt), context)
    _cut(question, _words(body, question), bool(body.get("ignore_eos")))
    return question


def _question(config: Config, body: dict[str, Any], prompt: str, context: int) -> Question:
    tokens = max(1, len(prompt) // 4)
    try:
        limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or context - tokens)
    except (TypeError, ValueError):
        raise BadRequest("max_tokens: Input should be a valid integer") from None
    if limit < 1:
        raise BadRequest("max_tokens must be at least 1")
    if tokens + limit > context:
        raise BadRequest(
            f"Requested token count exceeds the model's maximum context length of {context} tokens. "
            f"You requested a total of {tokens + limit} tokens: {tokens} tokens from the input messages and "
            f"{limit} tokens for the completion. Please reduce the number of tokens in the input messages or the "
            "completion to fit within the limit."
        )
    options = body.get("stream_options") or {}
    return Question(
        seed=f"{body.get('seed')}{prompt}",
        prompt_tokens=tokens,
        limit=limit,
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        usage_always=bool(options.get("continuous_usage_stats")),
    )


def _answer(config: Config, body: dict[str, Any], question: Question) -> list[Piece]:
    tools, choice = body.get("tools") or [], body.get("tool_choice", "auto")
    done = any(message.get("role") == "tool" for message in body["messages"] if isinstance(message, dict))
    if tools and config.tools and choice != "none" and (not done or choice != "auto"):
        named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
        function = next((t["function"] for t in tools if named in (None, t["function"]["name"])), None)
        if function is None:
            raise BadRequest(f"Tool {named!r} is not among the tools")
        question.tool = function["name"]
        arguments = json.dumps(_example(function.get("parameters") or {}, random.Random(question.seed)))
        return [(CALL, arguments[at : at + 5]) for at in range(0, len(arguments), 5)]
    shape = body.get("response_format") or {}
    if shape.get("type") in ("json_object", "json_schema"):
        schema = (shape.get("json_schema") or {}).get("schema") or {"properties": {"answer": {"type": "string"}}}
        text = json.dumps(_example(schema, random.Random(question.seed)))
        return [("content", text[at : at + 5]) for at in range(0, len(text), 5)]
    return _words(body, question)


def _words(body: dict[str, Any], question: Question) -> list[Piece]:
    """A seeded text; it ends by itself unless it may not."""
    length = question.limit if body.get("ignore_eos") else 60 + random.Random(question.seed).randrange(500)
    pieces = list(islice(text.tokens(question.seed), length))
    stops = body.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        whole, _, _ = "".join(pieces).partition(stop)
        while len("".join(pieces)) > len(whole):
            last = pieces.pop()
            rest = whole[len("".join(pieces)) :]
            if rest and len(rest) < len(last):
                pieces.append(rest)
                break
    return [("content", piece) for piece in pieces]


def _cut(question: Question, pieces: list[Piece], endless: bool) -> None:
    question.pieces = pieces[: question.limit]
    question.finish = "tool_calls" if question.tool else "stop"
    if len(pieces) > question.limit or (endless and not question.tool):
        question.finish = "length"


def _example(schema: dict[str, Any], source: random.Random) -> Any:
    """A value that a schema allows, for the common words of schemas."""
    if schema.get("enum"):
        return source.choice(schema["enum"])
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: _example(part, source) for name, part in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_example(schema.get("items") or {}, source)]
    if kind in ("integer", "number"):
        return source.randrange(int(schema.get("minimum", 1)), int(schema.get("maximum", 100)) + 1)
    return source.random() < 0.5 if kind == "boolean" else source.choice(text.OBJECTS)
