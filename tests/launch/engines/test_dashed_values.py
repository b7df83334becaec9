"""A value that begins with a dash reaches the engine as a value: argparse would take it for a flag."""

from __future__ import annotations

import pytest

from sparkloom import case
from sparkloom.inputs import profile as profiles

SUPER = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
LLAMA = next(name for name in profiles.names() if profiles.load(name).profile.engine.name == "llamacpp")


@pytest.mark.parametrize("name", [SUPER, f"{SUPER}--vllm-1node", f"{SUPER}--trtllm-1node"])
def test_joined_where_the_parser_takes_an_equals_sign(name: str) -> None:
    judged = case.judge(name, overrides=["launch.chat_template=--ca"])
    assert {"--chat-template=--ca", "--chat_template=--ca"} & set(judged.launch.ranks[0].argv)
    assert not [finding for finding in judged.errors if "chat_template" in finding.where]


def test_a_list_of_one_as_well() -> None:
    argv = case.judge(SUPER, overrides=["launch.cuda_graph_bs=[-1]"]).launch.ranks[0].argv
    assert "--cuda-graph-bs=-1" in argv


def test_a_parser_that_takes_none_is_not_told_so_and_lint_refuses() -> None:
    judged = case.judge(LLAMA, overrides=["launch.chat_template=--ca"])
    argv = judged.launch.ranks[0].argv
    assert argv[argv.index("--chat-template") + 1] == "--ca"
    assert any("--chat-template needs a value" in finding.message for finding in judged.errors)
