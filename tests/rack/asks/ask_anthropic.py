"""Run by an interpreter that has Anthropic's SDK, with what `sparkloom connect anthropic` says in its environment.

python ask_anthropic.py MODEL CALL...: a line of JSON for each call, what came or the SDK's own words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from anthropic import Anthropic, AnthropicError

MODEL = sys.argv[1]
client = Anthropic(max_retries=0, timeout=120)
HELLO = [{"role": "user", "content": "What is the capital of France?"}]


def messages() -> str:
    answer = client.messages.create(model=MODEL, messages=HELLO, max_tokens=40)
    return "".join(block.text for block in answer.content if block.type == "text")


def stream() -> str:
    with client.messages.stream(model=MODEL, messages=HELLO, max_tokens=40) as events:
        return "".join(events.text_stream)


def count_tokens() -> str:
    return f"{client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens} tokens"


def unknown_model() -> str:
    return str(client.messages.create(model="nobody", messages=HELLO, max_tokens=8).content)


def outcome(call: Callable[[], str]) -> dict[str, object]:
    try:
        said = call()
        return {"call": call.__name__, "works": bool(said.strip()), "said": said or "an empty answer"}
    except AnthropicError as error:
        return {"call": call.__name__, "works": False, "said": str(error)}


for word in sys.argv[2:]:
    print(json.dumps(outcome(globals()[word])), flush=True)
