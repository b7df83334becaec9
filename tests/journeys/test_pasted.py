"""What somebody pastes: with prompts, with a page's quotes and dashes, with the backslashes lost."""

from __future__ import annotations

import json

import pytest

from tests.journeys.terminal import Terminal

IMAGE = "nvcr.io/nvidia/vllm:25.11-py3"
PASTED = {
    "prompt": "user@spark1:~$ vllm serve openai/gpt-oss-120b \\\n> --tensor-parallel-size 2\n",
    "page": "vllm serve “openai/gpt-oss-120b” —tensor-parallel-size 2\n",
    "lines": "vllm serve openai/gpt-oss-120b\n  --tensor-parallel-size 2\n",
    "sudo": f"$ sudo docker run --gpus all \\  \n  {IMAGE} \\\n  vllm serve openai/gpt-oss-120b -tp 2\n",
}


@pytest.mark.parametrize("form", PASTED)
def test_what_is_pasted_is_what_was_meant(terminal: Terminal, form: str) -> None:
    (terminal.home / "pasted.txt").write_text(PASTED[form])
    told = terminal.type("sparkloom import pasted.txt --json", copied=True).text
    assert "belongs to no flag" not in told and json.loads(told)["profile"], told
    written = terminal.type("sparkloom import pasted.txt -o -", copied=True).has("id: openai/gpt-oss-120b", "tp: 2")
    if form == "sudo":
        written.has(IMAGE)


def test_an_address_is_not_fetched(terminal: Terminal) -> None:
    (terminal.home / "pasted.txt").write_text("https://example.invalid/recipes/gpt-oss.yaml\n")
    terminal.type("sparkloom import pasted.txt", 2).has("nothing is fetched", "paste the recipe's own text")
    terminal.type("sparkloom import https://example.invalid/gpt-oss.yaml", 2).has("nothing is fetched")
