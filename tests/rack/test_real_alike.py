"""SGLang, vLLM and llama.cpp themselves answer three questions, each with the same weights of a model that speaks.

SGLang and vLLM have them in float32, which holds exactly what the file's 4 bits stand for; llama.cpp computes with
those bits, and with 8 bits of what it multiplies them by.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import profile
from testbed.base import names, steps
from testbed.standins.hub import repository, smollm, weights
from tests.rack import real, speech
from tests.rack.test_real_sglang import GLOO

pytestmark = real.MARKS
BACK = 420.0
# Its port, its nodes, words for ansible-playbook. Nine heads and three KV heads are shared by three nodes, not by two.
ENGINES = {"vllm": (8000, 3, GLOO), "sglang": (30000, 3, GLOO), "llamacpp": (8080, 2, ())}
ALIKE = 20  # tokens
ROUNDED = 0.001  # what float32 added up in another order may change of a logprob: 0.00001 was seen
CLOSE = 0.5  # of a logprob, what llama.cpp's 8 bits may turn round: 0.12 was seen
Answers = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def answers() -> Answers:
    """By engine and question."""
    steps.quietly(smollm.unpacked_steps())
    with real.profiles():
        return {engine: _asked(engine, *facts) for engine, facts in ENGINES.items()}


def _asked(engine: str, port: int, count: int, words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    name = f"smollm2-135m-instruct--{engine}-{count}node"
    real.Served(name, engine, port, speech.MODEL, tuple(names.NODES)[:count], BACK, words).start()
    return {question: speech.chat(question, logprobs=True, top_logprobs=5) for question in speech.QUESTIONS}


def _tokens(told: dict[str, Any]) -> list[dict[str, Any]]:
    """What it said, token by token; whether the end of the turn is among them each engine holds for itself."""
    said = told["choices"][0]["logprobs"]["content"]
    return [token for token in said if token["token"] not in ("<|im_end|>", "")]


def test_the_weights_are_those_that_the_profiles_pin(answers: Answers, tmp_path: Path) -> None:
    with real.profiles():
        model = profile.load("smollm2-135m-instruct--vllm-3node").profile.model
    made = repository.make(tmp_path, model.model_copy(update={"revision": None}), weights.Shape())
    assert made.branches["main"] == model.revision


@pytest.mark.parametrize("question", speech.QUESTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_knows_what_it_is_asked(answers: Answers, engine: str, question: str) -> None:
    told = answers[engine][question]
    print(f"{engine}: {speech.said(told)!r}")
    assert speech.QUESTIONS[question].lower() in speech.said(told).lower(), told


@pytest.mark.parametrize("question", speech.QUESTIONS)
def test_all_read_the_same_prompt(answers: Answers, question: str) -> None:
    """Each by its own template engine and its own tokenizer."""
    assert len({answers[engine][question]["usage"]["prompt_tokens"] for engine in ENGINES}) == 1


@pytest.mark.parametrize("question", speech.QUESTIONS)
def test_sglang_and_vllm_say_the_same_words(answers: Answers, question: str) -> None:
    one, other = (_tokens(answers[engine][question])[:ALIKE] for engine in ("sglang", "vllm"))
    assert [token["token"] for token in one] == [token["token"] for token in other]
    apart = max(abs(left["logprob"] - right["logprob"]) for left, right in zip(one, other, strict=True))
    print(f"{len(one)} tokens, logprobs {apart:.6f} apart at most")
    assert apart < ROUNDED


@pytest.mark.parametrize("question", speech.QUESTIONS)
def test_llama_cpp_leaves_their_words_only_where_two_are_nearly_as_likely(answers: Answers, question: str) -> None:
    theirs, its = (_tokens(answers[engine][question]) for engine in ("vllm", "llamacpp"))
    for place, (token, chosen) in enumerate(zip(theirs, its, strict=False)):
        if token["token"] == chosen["token"]:
            continue
        known = {each["token"]: each["logprob"] for each in token["top_logprobs"]}
        print(f"apart at token {place}: {token['token']!r}, {chosen['token']!r}, {known}")
        assert token["logprob"] - known.get(chosen["token"], -math.inf) < CLOSE, known
        return
