"""A small real model, its weights in safetensors, its answers read."""

from __future__ import annotations

import json

import pytest

from testbed.beds.gpu import models, place
from testbed.beds.gpu.pod import Pod

ASKED = {
    "Name the capital of France.": "paris",
    "How many days are in a week?": "7",
    "What is the opposite of hot?": "cold",
}


@pytest.mark.takes(160)
def test_a_model_that_speaks_answers_what_it_was_asked(runtime: str, nets: None) -> None:
    if not models.SMOLLM.exists():
        pytest.skip(f"no {models.SMOLLM}: the pack's second part brings it")
    models.provide(models.SPEAKS)
    pod = Pod("gpu-smollm2--sglang-1node", 0, "speaks")
    try:
        first, told = pod.until(pod.serves, 200), {}
        for question in ASKED:
            body = {"model": "SmolLM2-135M-Instruct", "messages": [{"role": "user", "content": question}],
                    "max_tokens": 60, "temperature": 0}  # fmt: skip
            code, said = pod.ask("/v1/chat/completions", body=body)
            assert code == 200, said
            told[question] = json.loads(said)["choices"][0]["message"]["content"]
        place.tell("speaks", {"first_token_s": round(first, 1), "answers": told})
        assert all(word in told[question].lower() for question, word in ASKED.items()), told
    finally:
        pod.stop()
