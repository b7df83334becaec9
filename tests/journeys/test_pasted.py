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


def test_a_script_that_only_runs_a_recipe_leads_to_that_file(terminal: Terminal) -> None:
    (terminal.home / "launch.sh").write_text(
        '#!/bin/bash\n"$HOME/spark-vllm-docker/run-recipe.sh" glm-5.2-nvfp4 -n a,b\n'
    )
    terminal.type("sparkloom import launch.sh", 2).has(
        "runs the recipe glm-5.2-nvfp4 of another file", "import that one"
    )
    told = "#!/bin/bash\n# run-recipe.py and `vllm serve` are tried by hand\necho done\n"
    (terminal.home / "launch.sh").write_text(told)
    terminal.type("sparkloom import launch.sh", 2).has("no engine is started in it")


def test_a_model_that_is_only_a_folder_is_asked_for(terminal: Terminal) -> None:
    """Red before: it asked for a commit of `unknown/model`, and then to draft that from the hub."""
    docker = "docker run -v ~/models/x:/model vllm/vllm-openai:v0.25.1 --model /model --trust-remote-code\n"
    (terminal.home / "serve.sh").write_text(docker)
    told = terminal.type("sparkloom import serve.sh -o own.yml", 1)
    told.has("stands where the model's name belongs", "model.id: ORG/NAME")
    terminal.type("sparkloom plan own.yml", 2).has("its name is not known either", "profile new ORG/NAME")


def test_a_draft_model_that_is_only_a_folder_is_asked_for_too(terminal: Terminal) -> None:
    """Red before: no finding, and a rank that looks for /draft on its node."""
    mount = "--mount type=bind,source=$HOME/models/Qwen3-8B,target=/model -v /srv/eagle3-x:/draft"
    config = '{"model": "/draft", "method": "eagle3", "num_speculative_tokens": 3}'
    docker = f"docker run {mount} vllm/vllm-openai:v0.25.1 --model /model --speculative-config '{config}'\n"
    (terminal.home / "serve.sh").write_text(docker)
    told = terminal.type("sparkloom import serve.sh -o own.yml", 1)
    told.has("unknown/Qwen3-8B", "unknown/eagle3-x", "model.draft.id")
    (terminal.home / "serve.sh").write_text(docker.replace("$HOME/models/Qwen3-8B", "$ELSEWHERE"))
    terminal.type("sparkloom import serve.sh", 1).has("unknown/model stands")
    (terminal.home / "serve.sh").write_text(docker.replace('"/draft"', '"/model"'))
    assert "draft: {id" not in terminal.type("sparkloom import serve.sh -o -", 1, copied=True).text, "the model itself"
    (terminal.home / "serve.sh").write_text(f"hf download acme/eagle3-x --local-dir /srv/eagle3-x\n{docker}")
    terminal.type("sparkloom import serve.sh -o -", 1, copied=True).has(
        "draft: {id: acme/eagle3-x}", "model: acme/eagle3-x"
    )


def test_a_file_that_is_called_like_a_key_hides_no_key(terminal: Terminal) -> None:
    """Red before: `line  mods/some-fix`."""
    (terminal.home / "mods").write_text(
        "recipe_version: '2'\nmodel: a/b\nruntime: vllm\nmods: [mods/x]\ncommand: vllm serve a/b\n"
    )
    terminal.type("sparkloom import mods", 0).has("mods: mods/x")
