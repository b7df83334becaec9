"""Recipes of people who never heard of Sparkloom, typed as a command: read or not, never a crash, never silent."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.journeys.terminal import Terminal
from tests.places import REPO

RECIPES: list[dict[str, Any]] = yaml.safe_load((REPO / "tests/data/public_recipes.yml").read_text())
PLACED = {  # what a profile calls launch.parallel
    "tp", "tp_size", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "ep_size",
    "enable_expert_parallel", "nnodes",
}  # fmt: skip
MODEL = {"model", "model_path", "m", "hf"}
NAMED = {  # short flags, and the name that a profile has for them
    "O3": "optimization_level", "fa": "flash_attn", "ngl": "gpu_layers", "n_gpu_layers": "gpu_layers",
    "ub": "ubatch_size", "b": "batch_size", "dt": "defrag_thold", "ot": "override_tensor",
}  # fmt: skip
PROGRAM = re.compile(
    r"vllm serve|sglang serve|sglang\.launch_server|trtllm-serve|llama-server|^ *- serve$", re.MULTILINE
)
IMAGE = re.compile(r"vllm/vllm-openai\S*")  # starts its engine itself
FLAG = re.compile(r"(?<![\w$/{.%-])--?([A-Za-z][\w-]*)")


def test_they_come_from_many_places() -> None:
    places = {recipe["source"].split()[0] for recipe in RECIPES}
    assert len(RECIPES) >= 40 and len(places) >= 12
    assert len({recipe["name"] for recipe in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["name"])
def test_a_public_recipe_is_judged_and_what_is_unknown_is_named(recipe: dict[str, Any], terminal: Terminal) -> None:
    (terminal.home / recipe["file"]).write_text(recipe["text"])
    terminal.begin(f"sparkloom import {recipe['file']}")
    seen = terminal.end(None)
    assert seen.code in (0, 1), seen.text
    taken = json.loads(terminal.type(f"sparkloom import {recipe['file']} --json", seen.code, copied=True).text)
    verdict = taken["start"]["verdict"]
    assert _tight(f"{taken['profile']['model']['id']} {verdict}") in _tight(seen.text)
    assert (verdict == "will not start") == (seen.code == 1)
    unknown = taken["verdict"]["unknown"]
    assert [one["what"] for one in unknown if _tight(one["what"]) not in _tight(seen.text)] == []
    said = [*(one["what"] for one in unknown), *(finding["message"] for finding in taken["verdict"]["findings"])]
    assert [word for word in recipe["unknown"] if not any(word in text for text in said)] == []
    assert lost(recipe["text"], taken) == []


def lost(text: str, taken: dict[str, Any]) -> list[str]:
    """Flags behind the program's name that stand neither in the profile nor in the remainder."""
    profile = taken["profile"]
    assert profile["model"]["id"] and profile["launch"]["parallel"]["tp"]
    there = set(re.findall(r"[A-Za-z]\w*", json.dumps([profile["launch"], taken["remainder"]]).replace("-", "_")))
    begins = PROGRAM.search(text) or IMAGE.search(text)
    assert begins
    names = {name.replace("-", "_") for name in FLAG.findall(text[begins.end() :])} - MODEL - PLACED
    return sorted(name for name in names if not any(key.startswith(NAMED.get(name, name)) for key in there))


def _tight(text: str) -> str:
    """Without the places where a line may be broken."""
    return re.sub(r"\s+", "", text)
