"""A recipe from a forum: pasted, judged, written down, changed, rendered."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.journeys.terminal import Terminal, quoted

RECIPES = Path(__file__).parent / "recipes"
GLM, OSS = "nvidia/GLM-4.7-NVFP4", "openai/gpt-oss-120b"
FORMS = {
    "sparkrun.yaml": (GLM, "sglang 0.5.10", 4, 1),  # the post forgot a flag that its release needs
    "eugr.yaml": (OSS, "vllm", 2, 0),
    "compose.yml": (OSS, "vllm 0.19.0", 1, 0),
    "docker-run.txt": (OSS, "sglang 0.5.10", 1, 0),
    "cookbook.js": (GLM, "sglang", 4, 0),
    "start.sh": (GLM, "sglang", 4, 0),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_understood_and_becomes_a_profile(terminal: Terminal, name: str) -> None:
    model, engine, sparks, code = FORMS[name]
    shutil.copy(RECIPES / name, terminal.home)
    seen = terminal.type(f"sparkloom import {name} -o mine.yml", code)
    seen.has(model, engine, f"{sparks} Spark{'s' * (sparks != 1)}, ", "wrote mine.yml")
    told = json.loads(terminal.type(f"sparkloom import {name} --json", code, copied=True).text)
    assert told["verdict"]["fits"] is True and told["profile"]["model"]["id"] == model
    assert all(left["what"] and left["why"] for left in told["remainder"])
    terminal.type("sparkloom plan mine.yml", code).has(engine, "weights")


def test_what_a_post_forgot_is_named_with_its_cure_and_cured(terminal: Terminal) -> None:
    shutil.copy(RECIPES / "sparkrun.yaml", terminal.home)
    terminal.type("sparkloom import sparkrun.yaml -o mine.yml", 1).has(
        "error", "fix: disable_piecewise_cuda_graph: true"
    )
    terminal.type("sparkloom render mine.yml -o out", 1).has("refused", "disable_piecewise_cuda_graph")
    assert not (terminal.home / "out").exists()
    terminal.type("sed -i 's/^launch:/launch:\\n  disable_piecewise_cuda_graph: true/' mine.yml")
    terminal.type("sparkloom lint mine.yml")
    terminal.type("sparkloom render mine.yml -o out")
    terminal.type("grep -c 'kind: Pod' out/*.yaml")


def test_a_command_line_is_pasted_into_standard_input(terminal: Terminal) -> None:
    words = "vllm serve openai/gpt-oss-120b --max-model-len 65536 --gpu-memory-utilization 0.7"
    terminal.type(f"echo {quoted(words)} | sparkloom import -").has(OSS, "1 Spark, ")
    terminal.type(f"sparkloom import - <<< {quoted(words + ' --max-modle-len 1')}", 1).has("did you mean")
    terminal.type("sparkloom import - <<< 'make dinner'", 2).has("no engine is started in it", "expected")
    terminal.type("sparkloom import - </dev/null", 2).has("no engine is started in it")
    terminal.type("sparkloom import .", 2).has("is a folder")
    terminal.type("head -c 3000 /dev/urandom > noise; sparkloom import noise", 2).has("noise:")


def test_a_judged_launch_goes_out_and_comes_back(terminal: Terminal) -> None:
    for form, name in (("sparkrun", "out.yaml"), ("compose", "out.yml"), ("commands", "out.sh")):
        terminal.type(f"sparkloom export minimax-m2.5-nvfp4--2node --as {form} -o {name}").has(f"wrote {name}")
        # no export carries the consent to run code that no commit pins
        back = terminal.type(f"sparkloom import {name} -o back.yml", 1)
        back.has("nvidia/MiniMax-M2.5-NVFP4", "2 Sparks", "trust_remote_code")


def test_a_model_that_nobody_knows_says_so_first_and_is_judged_by_its_config(terminal: Terminal) -> None:
    for name in ("unknown.yaml", "config.json"):
        shutil.copy(RECIPES / name, terminal.home)
    seen = terminal.type("sparkloom import unknown.yaml -o mine.yml")
    seen.has("quiet-lab/Wren-27B-NVFP4", "may not start", "no facts of the model here", "--config", "wren-kernel")
    told = json.loads(terminal.type("sparkloom import unknown.yaml --json", copied=True).text)
    assert told["verdict"]["fits"] is None
    told = json.loads(
        terminal.type("sparkloom import unknown.yaml --config config.json --json", None, copied=True).text
    )
    assert told["verdict"]["facts"] and told["verdict"]["plan"]["limits"]
