"""Catalogs as facts: they load, they resolve, they type values, and their files are in the one canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.oracle import catalog as writer
from sparkloom.inputs.catalogs import argv as command_line
from sparkloom.inputs.catalogs import environment, flagtypes
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.flagtypes import FlagError
from sparkloom.inputs.catalogs.releases import FOLDER, nearest, releases
from sparkloom.launch import engines

FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_catalog_is_complete_and_canonical(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert path.stem == f"{data['engine']}-{data['version']}"
    assert writer.dump(data) == text, "written by hand? run: python -m scripts.oracle catalog ENGINE VERSION -o FILE"
    for flag in engines.catalog(data["engine"], data["version"]).flags():
        assert flag.type in flagtypes.TYPES, flag
        assert flag.name.startswith("-") and len(set(flag.names)) == len(flag.names), flag


def test_no_catalog_holds_anything_of_the_machine_that_wrote_it() -> None:
    for path in FILES:
        for section in ("flags", "env"):
            for name, facts in json.loads(path.read_text(encoding="utf-8"))[section].items():
                assert not str(facts.get("default", "")).startswith("/"), f"{path.name}: {name}"


def test_the_releases_that_the_product_speaks() -> None:
    assert {"0.5.10", "0.5.12", "0.5.13", "0.5.13.post1", "0.5.14", "0.5.17", "0.5.19", "0.5.23"} <= set(
        releases("sglang")
    )
    assert {"0.17.1", "0.18.1", "0.19.0"} <= set(releases("vllm"))
    assert (
        releases("sglang").index("0.5.9") < releases("sglang").index("0.5.10rc0") < releases("sglang").index("0.5.10")
    )
    with pytest.raises(LookupError, match="known engines: llamacpp, sglang, trtllm, vllm"):
        releases("sglan")


@pytest.mark.parametrize(
    ("engine", "asked", "version", "exact"),
    [
        ("sglang", "0.5.12", "0.5.12", True),
        ("sglang", "v0.5.12", "0.5.12", True),
        ("sglang", "0.5.12.post1-sm121", "0.5.12.post1", True),
        ("sglang", "0.5.10rc0", "0.5.10rc0", True),
        ("sglang", "0.5.12rc1", "0.5.12", False),
        ("sglang", "0.5.13-dev-nemotronh-mtp-sm121", "0.5.13", False),
        ("sglang", "0.5.15.post1", "0.5.14", False),
        ("sglang", "0.5.24", "0.5.23", False),
        ("sglang", "0.4.1", "0.5.9", False),
        ("sglang", "main-gemma4-sm121", "0.5.23", False),
        ("vllm", "0.22.0", "0.20.0", False),
        ("trtllm", "1.3.0rc9", "1.3.0rc9", True),
        ("llamacpp", "b8399", "b8399", True),
        ("llamacpp", "b9000", "b8399", False),
    ],
)
def test_the_catalog_that_answers_for_a_release(engine: str, asked: str, version: str, exact: bool) -> None:
    resolved = nearest(engine, asked)
    assert (resolved.version, not resolved.note) == (version, exact)
    assert exact or version in resolved.note
    assert engines.catalog(engine, asked).asked == resolved


def test_a_flag_is_found_by_any_of_its_spellings() -> None:
    catalog = engines.catalog("sglang", "0.5.12")
    names = ("tp_size", "--tp-size", "tensor_parallel_size", "tensor-parallel-size")
    assert {flag.name for name in names if (flag := catalog.flag(name))} == {"--tensor-parallel-size"}
    assert catalog.flag("tp") is None and catalog.flag("disable_deep_gemm") is None
    off = engines.catalog("vllm", "0.19.0").flag("no_enable_prefix_caching")
    assert off is not None and off.name == "--enable-prefix-caching"
    assert engines.catalog("trtllm", "1.3.0rc9").flag("tp_size") is not None


def test_deprecation_follows_the_releases() -> None:
    flags = {
        release: engines.catalog("sglang", release).flag("cuda_graph_max_bs")
        for release in ("0.5.12", "0.5.14", "0.5.23")
    }
    assert flags["0.5.12"] is not None and not flags["0.5.12"].deprecated
    assert flags["0.5.14"] is not None and flags["0.5.14"].replacement == "--cuda-graph-max-bs-decode"
    assert flags["0.5.23"] is None


@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("tp_size", 4, 4),
        ("tp_size", "4", 4),
        ("mem_fraction_static", 0.9, 0.9),
        ("mem_fraction_static", 1, 1.0),
        ("context_length", "256k", 256_000),
        ("context_length", "256Ki", 262_144),
        ("quantization", "modelopt_fp4", "modelopt_fp4"),
        ("cuda_graph_bs", [1, 2], [1, 2]),
        ("disable_radix_cache", True, True),
        ("disable_radix_cache", False, False),
        ("api_key", None, None),
        ("json_model_override_args", {"a": 1}, '{"a": 1}'),
    ],
)
def test_a_profile_value_is_typed(name: str, value: object, typed: object) -> None:
    assert command_line.coerce(engines.catalog("sglang", "0.5.12"), name, value) == typed


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("tp_size", 4.5, "type"),
        ("tp_size", "four", "type"),
        ("tp_size", True, "missing-value"),
        ("tp_size", [4], "extra-value"),
        ("quantization", "fp5", "choice"),
        ("disable_radix_cache", "yes", "extra-value"),
        ("disable_radix_cache", 2, "extra-value"),
        ("cuda_graph_bs", [1, "two"], "type"),
        ("disable_deep_gemm", True, "unknown"),
    ],
)
def test_a_wrong_profile_value_is_refused(name: str, value: object, kind: str) -> None:
    with pytest.raises(FlagError) as refusal:
        command_line.coerce(engines.catalog("sglang", "0.5.12"), name, value)
    assert refusal.value.problem.kind == kind


def test_sizes_are_spelled_differently_by_each_engine() -> None:
    sglang, vllm = engines.catalog("sglang", "0.5.12"), engines.catalog("vllm", "0.19.0")
    assert (
        command_line.coerce(vllm, "max_model_len", "8K") == 8192
        and command_line.coerce(vllm, "max_model_len", "auto") == -1
    )
    with pytest.raises(FlagError, match="a whole number"):
        command_line.coerce(sglang, "context_length", "8K")
    with pytest.raises(FlagError, match="before K"):
        command_line.coerce(vllm, "max_model_len", "1.5K")


def test_environment_variables() -> None:
    catalog = engines.catalog("sglang", "0.5.12")
    assert (
        environment.check(
            catalog, {"SGLANG_ENABLE_JIT_DEEPGEMM": "0", "SGLANG_HOST_IP": "10.0.0.1", "NCCL_ANYTHING": "x"}
        )
        == []
    )
    (word,) = environment.check(catalog, {"SGLANG_ENABLE_JIT_DEEPGEMM": "off"})
    assert word.kind == "type" and "false" in word.message
    (typo,) = environment.check(catalog, {"SGLANG_ENABLE_JIT_DEEPGEM": "0"})
    assert typo.kind == "unknown" and "did you mean SGLANG_ENABLE_JIT_DEEPGEMM?" in typo.message
    (old,) = environment.check(catalog, {"SGLANG_GC_LOG": "1"})
    assert old.kind == "deprecated" and "SGLANG_LOG_GC" in old.message
    vllm = environment.check(
        engines.catalog("vllm", "0.33.0"), {"VLLM_NVFP4_GEMM_BACKEND": "marlin", "VLLM_USE_FLASHINFER_SAMPLER": "0"}
    )
    assert [(problem.flag, problem.kind) for problem in vllm] == [("VLLM_NVFP4_GEMM_BACKEND", "unknown")]
    assert "0.17.1 to 0.20.0" in vllm[0].message


def test_a_variable_that_is_read_only_to_say_it_is_gone() -> None:
    (gone,) = environment.check(engines.catalog("sglang", "0.5.14"), {"SGLANG_ENABLE_SPEC_V2": "1"})
    assert gone.kind == "removed" and "does nothing" in gone.message


def test_speculation_defaults_changed_where_the_design_says() -> None:
    found = {
        release: engines.catalog("sglang", release).variable("SGLANG_ENABLE_SPEC_V2")
        for release in ("0.5.10", "0.5.12")
    }
    assert found["0.5.10"] is not None and found["0.5.10"].default is False
    assert found["0.5.12"] is not None and found["0.5.12"].default is True


def test_a_short_flag_is_a_key_only_where_its_adapter_writes_one_dash() -> None:
    """vLLM knows -tp, and --tp would be refused by it."""
    found = Catalog.load("llamacpp", "b11669").flag("np")
    assert found is not None and found.name == "--parallel"
    assert Catalog.load("vllm", "0.19.0").flag("tp") is None
