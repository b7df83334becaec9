"""Run by an interpreter that has OpenAI's SDK, with what `sparkloom connect openai` says in its environment.

python ask_openai.py MODEL CALL...: a line of JSON for each call, what came or the SDK's own words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from openai import OpenAI, OpenAIError

MODEL = sys.argv[1]
client = OpenAI(max_retries=0, timeout=120)
HELLO = [{"role": "user", "content": "What is the capital of France?"}]


def models() -> str:
    return ", ".join(model.id for model in client.models.list())


def model() -> str:
    return str(client.models.retrieve(MODEL).id)


def chat() -> str:
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=40)
    return str(answer.choices[0].message.content)


def stream() -> str:
    events = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=40, stream=True)
    return "".join(choice.delta.content or "" for event in events for choice in event.choices)


def include_usage() -> str:
    options = {"include_usage": True}
    events = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=8, stream=True, stream_options=options
    )
    usage = [event.usage for event in events if event.usage][-1]
    return f"{usage.prompt_tokens} and {usage.completion_tokens} tokens"


def responses() -> str:
    return str(client.responses.create(model=MODEL, input=HELLO, max_output_tokens=40).output_text)


def responses_stream() -> str:
    events = client.responses.create(model=MODEL, input=HELLO, max_output_tokens=40, stream=True)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def embeddings() -> str:
    return f"{len(client.embeddings.create(model=MODEL, input='Hello').data[0].embedding)} numbers"


def unknown_model() -> str:
    return str(client.chat.completions.create(model="nobody", messages=HELLO).choices[0].message.content)


def outcome(call: Callable[[], str]) -> dict[str, object]:
    try:
        said = call()
        return {"call": call.__name__, "works": bool(said.strip()), "said": said or "an empty answer"}
    except OpenAIError as error:
        return {"call": call.__name__, "works": False, "said": str(error)}


for word in sys.argv[2:]:
    print(json.dumps(outcome(globals()[word])), flush=True)
