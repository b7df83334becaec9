"""A model that speaks, SmolLM2 on llama.cpp itself, judges what stand-ins could only show in form."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.rack import real, speech

pytestmark = real.MARKS
NAME = "smollm2-135m-instruct--llamacpp-2node"
CONTEXT = 8192
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # the template's own
# Asked inside the pod: the endpoint is closed for what is not OpenAI's.
INSIDE = """
import json, urllib.request
key = open('/sparkloom/key/key').read().split()[0]
headers = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'}
body = json.dumps(%r).encode()
print(urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:8080%s', body, headers)).read().decode())
"""


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "llamacpp", 8080, "SmolLM2-135M-Instruct", ("spark1", "spark2"), 300.0)
        group.start()
        yield group


@pytest.mark.parametrize("question", speech.QUESTIONS)
def test_it_knows_what_it_is_asked(served: real.Served, question: str) -> None:
    told = speech.chat(question)
    assert speech.QUESTIONS[question].lower() in speech.said(told).lower(), told
    assert told["choices"][0]["finish_reason"] in ("stop", "length")


def test_the_chat_template_is_the_models_own(served: real.Served) -> None:
    """And `usage` counts the tokens of what it makes of the messages."""
    messages = [{"role": "user", "content": speech.CAPITAL}]
    made = json.loads(served.inside(0, INSIDE % ({"messages": messages}, "/apply-template")))["prompt"]
    asks = f"<|im_start|>user\n{speech.CAPITAL}<|im_end|>\n<|im_start|>assistant\n"
    assert made == f"<|im_start|>system\n{SYSTEM}<|im_end|>\n{asks}"
    words = {"content": made, "parse_special": True}
    tokens = json.loads(served.inside(0, INSIDE % (words, "/tokenize")))["tokens"]
    assert speech.chat(speech.CAPITAL)["usage"]["prompt_tokens"] == len(tokens)


def test_it_stops_at_its_own_end_at_a_word_and_at_a_number(served: real.Served) -> None:
    whole = speech.chat(speech.CAPITAL)
    assert whole["choices"][0]["finish_reason"] == "stop" and whole["usage"]["completion_tokens"] < 64
    assert "<|im_end|>" not in speech.said(whole)
    before = speech.chat(speech.CAPITAL, stop=["Paris"])
    assert speech.said(before) == speech.said(whole).split("Paris")[0]
    assert before["choices"][0]["finish_reason"] == "stop"
    cut = speech.chat(speech.CAPITAL, max_tokens=3)
    assert cut["choices"][0]["finish_reason"] == "length" and cut["usage"]["completion_tokens"] == 3
    assert speech.said(whole).startswith(speech.said(cut))


def test_a_stream_says_the_same_and_counts_the_same(served: real.Served) -> None:
    whole = speech.chat(speech.CAPITAL)
    came = list(speech.events(speech.CAPITAL, stream_options={"include_usage": True}))
    deltas = [choice["delta"] for event in came for choice in event["choices"]]
    assert deltas[0].get("role") == "assistant"
    assert "".join(delta.get("content") or "" for delta in deltas) == speech.said(whole)
    ends = [choice["finish_reason"] for event in came for choice in event["choices"] if choice["finish_reason"]]
    assert ends == ["stop"]
    counted = came[-1]["usage"]
    assert not came[-1]["choices"] and counted["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert counted["total_tokens"] == counted["prompt_tokens"] + counted["completion_tokens"]
    assert not any(event.get("usage") for event in speech.events(speech.CAPITAL))  # nobody asked for it


def test_logprobs_are_those_of_the_words_it_said(served: real.Served) -> None:
    told = speech.chat(speech.CAPITAL, logprobs=True, top_logprobs=3)
    words = told["choices"][0]["logprobs"]["content"]
    assert "".join(word["token"] for word in words).removesuffix("<|im_end|>") == speech.said(told)
    for word in words:
        best = [each["logprob"] for each in word["top_logprobs"]]
        assert word["logprob"] == best[0] == max(best) and sum(math.exp(each) for each in best) <= 1.001, word


def test_a_template_without_tools_gets_none_and_answers_in_text(served: real.Served) -> None:
    """llama.cpp drops what this model's template has no place for, without a word, even where a call is required."""
    weather = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "weather", "description": "Of a city", "parameters": weather}}
    plain = speech.chat("What is the weather in Paris?", max_tokens=16)
    for choice in ("auto", "required"):
        told = speech.chat("What is the weather in Paris?", max_tokens=16, tools=[tool], tool_choice=choice)
        assert told["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]
        assert speech.said(told) and not told["choices"][0]["message"].get("tool_calls"), told


def test_a_long_prompt_is_read_and_one_too_long_is_refused_in_words(served: real.Served) -> None:
    epoch = served.group.epoch()
    story = "The sea was calm and the boat went on. " * 700
    told = speech.chat(f"{story}\n{speech.CAPITAL}", max_tokens=16)
    assert 6000 < told["usage"]["prompt_tokens"] < CONTEXT, told["usage"]
    status, refused = speech.asked("/v1/chat/completions", messages=[{"role": "user", "content": story * 2}])
    assert status == 400 and "context size" in refused["error"]["message"] and str(CONTEXT) in json.dumps(refused)
    assert served.group.epoch() == epoch and "Paris" in speech.said(speech.chat(speech.CAPITAL))


def test_the_beginning_that_two_prompts_share_is_computed_once(served: real.Served) -> None:
    story = f"{time.time()} " + "A dog, a cat and a bird met at the old mill. " * 150
    first, again = (speech.chat(f"{story}\n{question}", max_tokens=4) for question in list(speech.QUESTIONS)[:2])
    known = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] < 50
    assert known > 0.9 * again["usage"]["prompt_tokens"], again["usage"]
    assert again["timings"]["prompt_ms"] < 0.5 * first["timings"]["prompt_ms"], (first["timings"], again["timings"])


def test_a_client_that_goes_away_stops_the_engine(served: real.Served) -> None:
    """Through the endpoint: what its client no longer reads is not computed on."""
    counter = "llamacpp:tokens_predicted_total"
    body = {"messages": [{"role": "user", "content": "Tell me a long story."}], "stream": True,
            "max_tokens": 4000, "ignore_eos": True}  # fmt: skip
    connection, response = speech.request("/v1/chat/completions", body)
    with closing(connection):
        for _ in range(20):
            assert response.readline()
    until = time.monotonic() + 15
    while served.metric("llamacpp:requests_processing") > 0:
        assert time.monotonic() < until, "it still computes for somebody who left"
        time.sleep(0.5)
    made = served.metric(counter)
    time.sleep(5)
    assert served.metric(counter) - made < 10  # the supervisor's own question may fall into it
