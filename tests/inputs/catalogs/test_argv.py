"""The judge that needs only a catalog, on the shared list of command lines."""

from __future__ import annotations

import random

import pytest

from sparkloom.inputs.catalogs import argv as command_line
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.releases import releases
from sparkloom.launch import engines
from tests.inputs.catalogs.cases import Case, cases

ENGINES = ("sglang", "vllm", "trtllm", "llamacpp")
PAIRS = [(engine, release) for engine in ENGINES for release in releases(engine)]


@pytest.mark.parametrize(("engine", "release"), PAIRS)
def test_every_case_is_judged_as_listed(engine: str, release: str) -> None:
    wrong = [line for case in cases(engine) for line in differences(case, engines.catalog(engine, release))]
    assert not wrong, "\n".join(wrong)


def differences(case: Case, catalog: Catalog) -> list[str]:
    problems = command_line.check(catalog, case.argv)
    kinds = {problem.kind for problem in problems}
    accepted = case.holds("accepted", catalog.version)
    wrong = []
    if accepted == any(problem.rejected for problem in problems):
        wrong.append(f"{case.id}: expected accepted={accepted}, found {[problem.message for problem in problems]}")
    for word in ("deprecated", "abbreviated", "unregistered"):
        if accepted and case.holds(word, catalog.version) != (word in kinds):
            wrong.append(f"{case.id}: expected {word}={case.holds(word, catalog.version)}, found {sorted(kinds)}")
    kind = None if accepted else case.text("kind", catalog.version)
    if kind and kind not in kinds:
        wrong.append(f"{case.id}: expected a problem of kind {kind}, found {sorted(kinds)}")
    return wrong


def test_the_list_is_long_and_two_sided() -> None:
    every = [case for engine in ENGINES for case in cases(engine)]
    assert len({case.id for case in every}) == len(every) >= 60
    rejected = [case for case in every if case.facts["accepted"] == "none"]
    assert len(rejected) >= 30 and len(every) - len(rejected) >= 30


def message(engine: str, release: str, *words: str) -> str:
    return "\n".join(problem.message for problem in command_line.check(engines.catalog(engine, release), words))


def test_all_problems_are_named_at_once() -> None:
    found = command_line.check(
        engines.catalog("sglang", "0.5.12"), ["--tp-size", "four", "--attention-backend", "x", "--nope"]
    )
    assert [problem.kind for problem in found] == ["type", "choice", "unknown", "required"]


@pytest.mark.parametrize(
    ("engine", "release", "words", "hint"),
    [
        ("sglang", "0.5.12", ["--disable-radix-cach"], "--disable-radix-cache"),
        ("sglang", "0.5.12", ["--mem-fraction-statik", "1"], "did you mean --mem-fraction-static?"),
        ("sglang", "0.5.12", ["--disable-deep-gemm"], "SGLANG_ENABLE_JIT_DEEPGEMM"),
        ("sglang", "0.5.12", ["--gpu-memory-utilization", "1"], "it is a flag of vllm"),
        ("vllm", "0.19.0", ["m", "--mem-fraction-static", "1"], "it is a flag of sglang"),
        ("sglang", "0.5.23", ["--disable-piecewise-cuda-graph"], "here it is --cuda-graph-backend-prefill=disabled"),
        ("sglang", "0.5.23", ["--cuda-graph-max-bs", "8"], "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"),
        ("sglang", "0.5.12", ["--cuda-graph-max-bs-decode", "8"], "sglang 0.5.14 to 0.5.23 has it"),
        ("sglang", "0.5.12", ["--quantization", "modelopt_fp5"], "found 'modelopt_fp5'"),
        ("sglang", "0.5.12", ["--disable-radix-cache", "false"], "does --disable-radix-cache take fewer values?"),
        ("vllm", "0.19.0", ["m", "--quantization", "fp4"], "registers no 'fp4'"),
        ("vllm", "0.17.1", ["m", "--speculative-config", '{"method":"mtp","moe_backend":"triton"}'], "'moe_backend'"),
        ("vllm", "0.19.0", ["m", "--speculative-config", '{"method":"mtq"}'], "knows no method 'mtq'"),
        ("vllm", "0.19.0", ["m", "--compilation-config", '{"cudagraph_mod":1}'], "did you mean cudagraph_mode?"),
        ("sglang", "0.5.19", ["--enable-expert-distribution-metrics"], "--expert-balancedness-report-mode"),
    ],
)
def test_a_refusal_says_what_to_write(engine: str, release: str, words: list[str], hint: str) -> None:
    assert hint in message(engine, release, *words)


def test_no_word_list_breaks_the_judge() -> None:
    chance = random.Random(1)
    nasty = [
        "",
        "-",
        "--",
        "---",
        "=",
        "--=",
        "--x=",
        "-O",
        "-O=",
        "-.",
        "--a.b",
        "--a.+",
        "--speculative-config.x",
        "{",
        "[" * 20_000,
    ]
    for engine, release in PAIRS:
        catalog = engines.catalog(engine, release)
        known = [name for flag in catalog.flags() for name in flag.names]
        for _ in range(200):
            words = [chance.choice([*nasty, *chance.sample(known, 5)]) for _ in range(chance.randint(0, 6))]
            assert all(problem.message for problem in command_line.check(catalog, words)), words


def test_a_plugin_may_register_its_own_parser() -> None:
    words = ["m", "--reasoning-parser", "super_v3", "--reasoning-parser-plugin", "/x.py"]
    assert command_line.check(engines.catalog("vllm", "0.19.0"), words) == []


def test_the_entry_words_may_be_left_out_and_paths_are_fine() -> None:
    catalog = engines.catalog("sglang", "0.5.12")
    flags = ["--model-path", "m", "--tp-size", "4"]
    for start in ([], ["python3", "-m", "sglang.launch_server"], ["/usr/bin/python3", "-m", "sglang.launch_server"]):
        assert command_line.check(catalog, [*start, *flags]) == []
    assert command_line.check(catalog, ["python3", "-m", "other.module", *flags]) != []
