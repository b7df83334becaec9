"""What a plan refuses is refused by lint and render too; what nobody can know is said and not refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sparkloom import case
from sparkloom.base import repository
from sparkloom.base.finding import Finding
from sparkloom.inputs import profile, site_memory
from sparkloom.launch.memory import constants
from tests.places import REPO

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
VLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(repository, "WORK", tmp_path)
    return site_memory.path("gb10")


def found(name: str, rule: str, *overrides: str) -> list[Finding]:
    return [finding for finding in case.judge(name, overrides=overrides).findings if finding.rule == rule]


@pytest.mark.parametrize(
    ("name", "override", "change"),
    [
        (ULTRA, "launch.mem_fraction_static=0.85", "mem_fraction_static 0.85 -> 0.88"),
        (VLLM, "launch.max_model_len=16000000", "max_model_len"),
        (VLLM, "launch.gpu_memory_utilization=0.98", "gpu_memory_utilization"),
    ],
)
def test_what_plan_refuses_is_a_gate(name: str, override: str, change: str) -> None:
    plan = case.plan(name, overrides=[override])
    (finding,) = found(name, "does-not-fit", override)
    assert plan["fits"] is False and finding.severity == "error"
    assert finding.message == plan["reason"] and change in finding.fix and finding.where.startswith("--set ")
    with pytest.raises(case.Refused, match="does-not-fit"):
        case.render(name, overrides=[override])
    assert case.render(name, overrides=[override], force=True).objects


GUIDE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4--vllm"


@pytest.mark.parametrize("name", profile.names())
def test_shipped_profiles_pass_the_gate(name: str) -> None:
    rules = {finding.rule for finding in case.judge(name).findings if finding.severity != "info"}
    assert not rules & {"does-not-fit", "fit-uncertain", "weights-disagree"}


def test_uncertain_is_information_where_others_ran_this_very_launch_and_a_warning_where_nobody_did() -> None:
    (finding,) = found(GUIDE, "fit-uncertain")
    assert finding.severity == "info" and "On others' Sparks it ran: NVIDIA-NeMo/Nemotron" in finding.message
    (finding,) = found(GUIDE, "fit-uncertain", "launch.gpu_memory_utilization=0.86")
    assert finding.severity == "warning" and "it ran" not in finding.message


def several(path: Path, fraction: float, nodes: int = 4) -> str:
    """Super with vLLM over several Sparks."""
    launch = {
        "parallel": {"nodes": nodes, "tp": nodes},
        "gpu_memory_utilization": fraction,
        "max_model_len": 262144,
        "max_num_seqs": 4,
        "kv_cache_dtype": "fp8",
        "quantization": "modelopt_fp4",
    }
    engine = {"name": "vllm", "release": "0.19.0", "image": "vllm/vllm-openai:v0.19.0-cu130"}
    own = {"extends": VLLM.removesuffix("--vllm-1node"), "summary": "x", "engine": engine, "launch": launch}
    path.write_text(yaml.safe_dump(own, sort_keys=False))
    return str(path)


@pytest.mark.parametrize(("fraction", "nodes"), [(0.84, 2), (0.85, 2), (0.85, 4), (0.87, 2), (0.9, 4)])
def test_published_vllm_launches_are_uncertain_until_the_site_is_measured(
    tmp_path: Path, build: Path, fraction: float, nodes: int
) -> None:
    """Fractions of recipes that people serve with on two to four Sparks; one pair has never 102.2 GiB free."""
    own = several(tmp_path / "own.yml", fraction, nodes)
    plan = case.plan(own)
    assert plan["fits"] is None and plan["reason"].startswith("uncertain: 100.7 to 112.6 GiB")
    assert "playbooks/preflight.yml" in plan["reason"] and plan["change"]
    (finding,) = found(own, "fit-uncertain")
    assert finding.severity == "warning" and "gpu_memory_utilization" in finding.fix
    assert case.render(own).objects
    site_memory.keep(build, {f"spark{n}": (116.0, 116.0) for n in (1, 2, 3, 4)}, "now")
    assert case.plan(own)["fits"] is True
    site_memory.keep(build, {f"spark{n}": (101.3, 102.2) for n in (1, 2, 3, 4)}, "now")
    assert case.plan(own)["fits"] is False
    with pytest.raises(case.Refused):
        case.render(own)


def test_a_context_that_follows_the_cache_is_no_reason_to_refuse() -> None:
    """`max_model_len: auto` (-1) makes vLLM take as much context as its cache holds."""
    tight = ("launch.gpu_memory_utilization=0.66", "launch.kv_cache_dtype=auto", "launch.max_num_seqs=1")
    assert case.plan(VLLM, overrides=[*tight, "launch.max_model_len=262144"])["fits"] is False
    for word in ("auto", "-1"):
        plan = case.plan(VLLM, overrides=[*tight, f"launch.max_model_len={word}"])
        assert plan["fits"] is not False, plan["reason"]  # what graphs and the load take decides


@pytest.mark.parametrize(("release", "fraction"), [("0.19.0", 0.9), ("0.33.0", 0.92)])
def test_an_unset_fraction_is_the_default_of_the_release(release: str, fraction: float) -> None:
    plan = case.plan(VLLM, overrides=["launch.gpu_memory_utilization="], release=release)
    assert plan["memory"]["static_gib"] == pytest.approx(fraction * 121.6)


def test_more_than_any_spark_has_is_refused(tmp_path: Path) -> None:
    assert case.plan(several(tmp_path / "own.yml", 0.95))["fits"] is False


def test_less_than_every_spark_has_fits(tmp_path: Path) -> None:
    assert case.plan(several(tmp_path / "own.yml", 0.8))["fits"] is True


def test_ray_beside_nnodes_is_refused_and_mp_is_written(tmp_path: Path) -> None:
    own = several(tmp_path / "own.yml", 0.8)
    argv = case.judge(own).launch.ranks[0].argv
    assert argv[argv.index("--distributed-executor-backend") + 1] == "mp"
    override = "launch.distributed_executor_backend=ray"
    (finding,) = found(own, "vllm-executor-backend", override)
    assert finding.severity == "error" and finding.where.startswith("--set ")
    assert "--distributed-executor-backend" not in case.judge(VLLM).launch.ranks[0].argv


def test_facts_that_do_not_weigh_what_the_checkpoint_does_are_named_and_the_heavier_counts(tmp_path: Path) -> None:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text()
    slipped = text.replace("moe: 48", "moe: 24").replace("{tp4-ep4: 83.72}", "{}")
    assert slipped.count("moe: 24") == 1
    path = tmp_path / "own.yml"
    path.write_text(slipped)
    (finding,) = found(str(path), "weights-disagree")
    line = next(n for n, said in enumerate(slipped.splitlines(), 1) if "size_gb" in said)
    assert finding.severity == "warning" and finding.where == f"{path}:{line}"
    right = case.plan(ULTRA)["memory"]["weights_computed_gib_per_rank"]
    assert case.plan(str(path))["memory"]["weights_gib_per_rank"] == pytest.approx(right, rel=0.07)


@pytest.mark.parametrize("name", [ULTRA, "sparkarena--minimax-m3-v0-nvfp4"])
def test_a_plan_below_the_memory_guard_s_floor_says_so(name: str) -> None:
    """The guard stops an engine that the plan calls fitting; Ultra's log says how careful the plan is there."""
    (finding,) = found(name, "near-guard-floor")
    assert finding.severity == "info" and "below 8 available" in finding.message
    assert "15.09 after capture" in finding.message and "mem_fraction_static lower" in finding.fix
    assert ".yml:" in finding.where


def test_one_with_more_says_nothing() -> None:
    assert found(ULTRA, "near-guard-floor", "launch.mem_fraction_static=0.89") == []
    assert found("nvidia--glm-4.7-nvfp4", "near-guard-floor") == []


def test_the_guard_s_floor_has_one_value() -> None:
    defaults = yaml.safe_load((REPO / "roles/node_base/defaults/main.yml").read_text())
    assert defaults["node_base_memory_floor_gib"] == constants.GUARD_FLOOR_GIB.value
