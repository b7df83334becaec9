"""What the first line promises: one verdict, every guess behind a sign, and a name that several profiles have."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.journeys.terminal import Terminal
from tests.journeys.test_recipes import FORMS, RECIPES

VERDICTS = ("starts", "should start", "may not start: ", "will not start: ")
GLM = "nvidia--glm-4.7-nvfp4"


@pytest.mark.parametrize("name", [*FORMS, "unknown.yaml"])
def test_a_recipe_begins_with_one_verdict_that_its_exit_status_repeats(terminal: Terminal, name: str) -> None:
    shutil.copy(RECIPES / name, terminal.home)
    seen = terminal.type(f"sparkloom import {name}", None)
    told = json.loads(terminal.type(f"sparkloom import {name} --json", seen.code, copied=True).text)
    start = told["start"]
    assert seen.words.startswith(f"{told['profile']['model']['id']} {start['verdict']}")
    assert sum(verdict in f"{seen.lines[0]} " for verdict in VERDICTS) == 1
    assert (seen.code == 1) == (start["verdict"] == "will not start")
    seen.has(start["why"], start["sure"], start["surer"], *(f"~ {one['what']}" for one in told["assumed"]))
    assert "assumed:" in seen.text and all(one["instead"] for one in told["assumed"])


def test_what_replaces_a_guess_is_typed_and_the_guess_is_gone(terminal: Terminal) -> None:
    for name in ("unknown.yaml", "config.json"):
        shutil.copy(RECIPES / name, terminal.home)
    seen = terminal.type("sparkloom import unknown.yaml -o mine.yml")
    seen.has("may not start: no facts", "vllm ~0.33.0", "instead: --config config.json", "instead: --engine-version")
    terminal.type("grep -c '^# ~ ' mine.yml").has("4")
    seen = terminal.type("sparkloom lint mine.yml", 2).has("mine.yml:", "no facts of", "--config config.json")
    assert "is missing" not in seen.text
    known = "--config config.json --engine-version 0.33.0"
    seen = terminal.type(f"sparkloom import unknown.yaml {known} -o mine.yml", None).has("vllm 0.33.0")
    assert "~ release" not in seen.text and "~ image" not in seen.text and "no facts" not in seen.text
    terminal.type("sparkloom plan mine.yml", None).has("~ --wren-kernel fused", "--set launch.wren_kernel=")
    seen = terminal.type("sparkloom plan mine.yml --set launch.wren_kernel= --engine-version 0.33.0", None)
    assert "wren-kernel" not in seen.text
    terminal.type("sparkloom show argv mine.yml --rank 0 > argv", None).has("~ --wren-kernel fused", "instead: ")
    terminal.type("sparkloom lint mine.yml", None).has("assumed:", "~ --wren-kernel fused")
    terminal.type("sparkloom import unknown.yaml --engine-version nonsense", None).has("nonsense")


def test_a_plan_begins_with_its_verdict_too(terminal: Terminal) -> None:
    terminal.type("sparkloom plan openai--gpt-oss-120b").has("openai--gpt-oss-120b starts", "surer:", "~8.0")
    terminal.type(f"sparkloom plan {GLM}").has(f"{GLM} should start", "memory fits", "~20.9", "~ free memory")
    terminal.type("sparkloom plan cyankiwi--minimax-m2.7-awq-4bit").has("may not start: only at the better end")
    wrong = "--set launch.gpu_memory_utilization=1.6"
    terminal.type(f"sparkloom plan openai--gpt-oss-120b {wrong}", 1).has("will not start: ", "certain, by ")


def test_a_name_that_several_have_lists_them_with_verdict_and_speed(terminal: Terminal) -> None:
    terminal.begin("sparkloom plan glm")
    terminal.sees("Enter for none)? ")
    terminal.answer("1")
    terminal.end().has("1 nvidia--glm-4.7-nvfp4--mtp starts 22.8", "nvidia--glm-4.7-nvfp4--mtp starts measured")
    terminal.begin("sparkloom plan glm")
    terminal.sees("Enter for none)? ")
    terminal.answer("")
    assert "names 4 profiles" not in terminal.end(2).words, "the list stands there already"
    terminal.begin("sparkloom plan glm")
    terminal.sees("Enter for none)? ")
    terminal.answer("9")
    terminal.end(2).has("names 4 profiles", "write more of one")
    terminal.type("sparkloom plan glm | cat > listed; echo ${PIPESTATUS[0]}").has("write more of one", " 2")
    terminal.type("grep -c 'nvidia--glm' listed").has("4")
    terminal.type("sparkloom plan glm --first").has("glm: nvidia--glm-4.7-nvfp4--mtp", "starts")
    told = json.loads(terminal.type("sparkloom plan glm --json 2>/dev/null", 2, copied=True).text)
    assert told["error"] and {one["name"] for one in told["candidates"]} >= {GLM, f"{GLM}--mtp"}
    assert all(one["verdict"] and one["n1"] for one in told["candidates"])
    terminal.type("sparkloom plan nemotron | cat", 0).has("should start", "~")
