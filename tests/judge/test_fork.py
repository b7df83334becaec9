"""An engine that is no official release: what only its author says is let through, and never silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding
from tests.cli.test_cli import data, run

SUPER = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
FORK: dict[str, Any] = {
    "name": "b12x",
    "source": "example.org/somebody/vllm, branch b12x",
    "flags": {
        "b12x_warm": "switch", "b12x_depth": "int", "kv_cache_dtype": ["nvfp4_ds_mla"], "moe_backend": ["b12x_dense"],
        "quantization": ["modelopt_gb10_hybrid"],
    },
    "env": {"VLLM_B12X_MODE": ["fast", "safe"]},
}  # fmt: skip


@pytest.fixture
def forked(tmp_path: Path) -> Any:
    def make(launch: dict[str, Any], fork: dict[str, Any] | None = FORK, env: dict[str, str] | None = None) -> str:
        file = tmp_path / "forked.yml"
        engine: dict[str, Any] = {"name": "vllm", "release": "0.33.0", "image": "localhost/forked:1"}
        if fork is not None:
            engine["fork"] = fork
        launch = {"parallel": {"nodes": 1, "tp": 1}, "max_num_seqs": 4, "max_model_len": 65536, **launch}
        data = {"extends": SUPER, "summary": "forked", "engine": engine, "launch": launch, "env": env or {}}
        file.write_text(yaml.safe_dump(data))
        return str(file)

    return make


def findings(profile: str) -> dict[str, Finding]:
    found = [f for f in case.judge(profile).findings if f.rule.startswith(("flag-", "fork-"))]
    return {f.message: f for f in found}


USED = {"b12x_warm": True, "b12x_depth": 3, "kv_cache_dtype": "nvfp4_ds_mla", "moe_backend": "b12x_dense"}


def test_without_the_fork_its_flags_are_a_slip(forked: Any) -> None:
    with pytest.raises(InputError, match="no release of vllm has such a flag"):
        case.judge(forked(USED, fork=None))


def test_each_word_of_the_fork_is_named(forked: Any) -> None:
    found = findings(forked({**USED, "quantization": "modelopt_gb10_hybrid"}, env={"VLLM_B12X_MODE": "fast"}))
    assert {f.rule for f in found.values()} == {"fork-unchecked"} and {f.severity for f in found.values()} == {"info"}
    text = "\n".join(found)
    for word in ("b12x_warm", "b12x_depth", "kv_cache_dtype", "moe_backend", "quantization", "VLLM_B12X_MODE"):
        assert word in text, word
    assert "beside them 6 by the fork's own word alone" in text
    assert all(f.evidence == (FORK["source"],) for f in found.values())


def test_the_forks_own_form_is_held_to(forked: Any) -> None:
    found = findings(forked({"b12x_depth": "deep", "moe_backend": "b12x_dens"}, env={"VLLM_B12X_MODE": "fast"}))
    errors = [f.message for f in found.values() if f.severity == "error"]
    assert any("b12x-depth: expected a whole number" in text for text in errors)
    assert any("b12x_dens" in text for text in errors)


def test_a_flag_that_nobody_declared_is_still_refused(forked: Any) -> None:
    with pytest.raises(InputError, match="b12x_dept"):
        case.judge(forked({"b12x_dept": 3}))


def test_a_fork_that_adds_nothing_is_said(forked: Any) -> None:
    (finding,) = findings(forked({}, fork={"name": "x", "source": "y"})).values()
    assert "0 by the fork's own word" in finding.message


def test_plan_and_argv_show_it(forked: Any) -> None:
    profile = forked(USED)
    plan = data("plan", profile)
    assert any(f["rule"] == "fork-unchecked" and f["severity"] == "info" for f in plan["findings"])
    settings = {s["name"]: s["why"] for s in plan["launch"]["settings"]}
    assert settings["b12x_depth"] == "unchecked: the fork's own word (b12x)" and not settings["max_num_seqs"]
    ran = run("argv", profile, "--rank", "0", "--json")
    words = json.loads(ran.stdout)
    assert words[words.index("--b12x-depth") + 1] == "3" and "--b12x-warm" in words
    assert "~ --b12x-depth 3" in ran.stderr and "author's word" in ran.stderr


def test_three_sparks_share_heads_only_where_a_fork_pads_them(forked: Any) -> None:
    """As recipes of vLLM's forks for three Sparks have it; a release refuses it at its start."""
    three: dict[str, Any] = {"parallel": {"nodes": 3, "tp": 3}}
    with pytest.raises(InputError, match="tp = 3 does not divide the model's 32 query heads"):
        case.judge(forked(three, fork=None))
    uneven = [message for message in findings(forked(three)) if "does not divide" in message]
    assert uneven == [
        "unchecked: the fork's own word (b12x): launch.parallel.tp = 3 does not divide the model's 32 query heads"
    ]
