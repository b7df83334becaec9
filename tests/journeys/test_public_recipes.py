"""Recipes of people who never heard of Sparkloom, typed as a command: understood or not, never a crash, never silent.

Nothing of the product is imported: what is asked is what a person sees, on a terminal of 80 columns and in `--json`.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import REPO

SPARKLOOM = str(Path(sys.executable).with_name("sparkloom"))
RECIPES: list[dict[str, Any]] = yaml.safe_load((REPO / "tests/data/public_recipes.yml").read_text())
PLACED = {  # what a profile calls launch.parallel
    "tp", "tp_size", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "ep_size",
    "enable_expert_parallel", "nnodes",
}  # fmt: skip
MODEL = {"model", "model_path", "m", "hf"}
LONG = {  # short flags, and the name that a profile has for them
    "O3": "optimization_level", "fa": "flash_attn", "ngl": "gpu_layers", "n_gpu_layers": "gpu_layers",
    "ub": "ubatch_size", "b": "batch_size", "dt": "defrag_thold", "ot": "override_tensor",
    "disable_log_requests": "no_enable_log_requests", "mamba_ssm_cache_dtype": "mamba_ssm_cache_dtype",
    "kv_cache_free_gpu_memory_fraction": "kv_cache_free_gpu_memory_fraction",
}  # fmt: skip
STARTS = re.compile(
    r"(vllm/vllm-openai|vllm serve|sglang serve|sglang\.launch_server|trtllm-serve|llama-server|^ *- serve$)",
    re.MULTILINE,
)
FLAG = re.compile(r"(?<![\w$/{.%-])--?([A-Za-z][\w-]*)")


def on_a_terminal(*words: str, columns: int = 80) -> tuple[int, str]:
    """Exit status and all that a person at such a window sees."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "CI")}
    started = subprocess.Popen(
        [SPARKLOOM, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**env, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = bytearray()
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # its end of the terminal is closed
        pass
    os.close(ours)
    return started.wait(60), re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


def test_they_come_from_many_places() -> None:
    places = {recipe["source"].split()[0] for recipe in RECIPES}
    assert len(RECIPES) >= 40 and len(places) >= 12
    assert len({recipe["name"] for recipe in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["name"])
def test_a_public_recipe_is_judged_and_what_is_unknown_is_named(recipe: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / recipe["file"]
    file.write_text(recipe["text"])
    status, shown = on_a_terminal("import", str(file))
    assert status in (0, 1), shown
    assert "Traceback" not in shown and max(map(len, shown.splitlines())) <= 80

    done = subprocess.run([SPARKLOOM, "import", str(file), "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == status and done.stderr == ""
    taken = json.loads(done.stdout)
    unknown = taken["verdict"]["unknown"]
    assert all(_tight(one["what"]) in _tight(shown) for one in unknown)
    said = [*(one["what"] for one in unknown), *(finding["message"] for finding in taken["verdict"]["findings"])]
    assert [word for word in recipe["unknown"] if not any(word in text for text in said)] == []
    assert lost(recipe["text"], taken) == []


def lost(text: str, taken: dict[str, Any]) -> list[str]:
    """Flags behind the program's name that stand neither in the profile nor in the remainder."""
    profile = taken["profile"]
    there = set(re.findall(r"[A-Za-z]\w*", json.dumps([profile["launch"], taken["remainder"]]).replace("-", "_")))
    begins = STARTS.search(text)
    assert begins
    names = {name.replace("-", "_") for name in FLAG.findall(text[begins.end() :])}
    names = {LONG.get(name, name) for name in names - MODEL}
    assert profile["model"]["id"] and profile["launch"]["parallel"]["tp"]
    return sorted(names - PLACED - there)


def _tight(text: str) -> str:
    """Without the places where a line may be broken."""
    return re.sub(r"\s+", "", text)
