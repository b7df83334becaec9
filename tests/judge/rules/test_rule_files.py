"""A rule in YAML: what each condition means, and that a slip in a file is told with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs.families import Facts
from sparkloom.judge import rules
from sparkloom.judge.rules.base import case
from sparkloom.judge.rules.rule import Check, Rule, load

WHOLE = """# A trap that was made up.
severity: error
scope: {engine: sglang, releases: ">=0.5.12"}
check:
  - when: {attention_backend: triton}
    found: attention_backend is triton on {architecture}
    at: attention_backend
why: the engine looks for an attention layer where there is none
fix: "attention_backend: flashinfer"
evidence:
  - ultra-post
failing: {flags: {attention_backend: triton}}
passing: {flags: {attention_backend: flashinfer}}
"""
FILES = sorted(Path(rules.__file__).parent.glob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rule_reads_the_same_under_the_strict_reader(path: Path) -> None:
    """Which refuses keys that stand twice, and texts that no terminal can show."""
    written = document.load(path)
    written.data["id"] = path.stem
    assert document.validate(Rule, written) == load(path)


@pytest.mark.parametrize(
    ("conditions", "sprung", "not_sprung"),
    [
        ({"quantization": "fp4"}, {"quantization": " FP4 "}, {"quantization": "fp8"}),
        ({"quantization": ["fp4", "awq"]}, {"quantization": "awq"}, {}),
        ({"quantization": {"not": "fp8"}}, {}, {"quantization": "fp8"}),
        ({"enable_sleep_mode": True}, {"enable_sleep_mode": True}, {"enable_sleep_mode": 1}),
        ({"tp_size": 1}, {"tp_size": 1}, {"tp_size": True}),
        ({"load_format": {"given": True}}, {"load_format": ""}, {}),
        ({"load_format": {"given": False}}, {}, {"load_format": "auto"}),
        ({"kv_cache_dtype": {"starts": "fp8"}}, {"kv_cache_dtype": "fp8_e4m3"}, {"kv_cache_dtype": "auto"}),
        ({"kv_cache_dtype": {"contains": ["fp4", "int4"]}}, {"kv_cache_dtype": "nvfp4"}, {}),
        ({"dp_size": {"above": 1}}, {"dp_size": 2}, {"dp_size": 1}),
        ({"dp_size": {"above": 1, "below": 4}}, {"dp_size": 2}, {"dp_size": 4}),
        ({"dp_size": {"above": "tp_size"}}, {"dp_size": 2, "tp_size": 1}, {"dp_size": 2}),
        ({"context_length": {"above": "facts.context"}}, {"context_length": 9}, {"context_length": 8}),
        ({"options.cache.reuse": {"not": False}}, {"options": {"cache": 1}}, {"options": {"cache": {"reuse": False}}}),
    ],
)
def test_a_condition(conditions: Any, sprung: dict[str, Any], not_sprung: dict[str, Any]) -> None:
    check = Check.model_validate({"when": conditions, "found": "x", "at": "parallel"})
    assert list(check.hits(case(flags=sprung, facts=Facts(context=8))))
    assert not list(check.hits(case(flags=not_sprung, facts=Facts(context=8))))


def test_a_release_that_nobody_knows_is_within_no_range() -> None:
    check = Check.model_validate({"when": {"release": {"within": "<0.6"}}, "found": "x", "at": "parallel"})
    assert list(check.hits(case(release="0.5.9"))) and not list(check.hits(case(release="")))


def test_each_of_several_is_judged_and_named() -> None:
    when = {"it": {"given": True, "not": "1"}, "partial": False}
    check = Check.model_validate({"when": when, "found": "{name} is '{it}', tp {tp}", "at": ["env.A", "env.B", "c"]})
    hits = list(check.hits(case(env={"A": "0", "B": "1"}, flags={"c": 2.0})))
    assert [(hit.message, hit.flag) for hit in hits] == [("A is '0', tp 1", "env.A"), ("c is '2', tp 1", "c")]


def test_an_exception_counts_whole() -> None:
    unless = [{"attention_backend": "triton", "pp": 1}, {"disable_cuda_graph": True}]
    check = Check.model_validate({"unless": unless, "found": "x", "at": "parallel"})
    assert list(check.hits(case(flags={"attention_backend": "triton"}, pp=2)))
    assert not list(check.hits(case(flags={"attention_backend": "triton"})))
    assert not list(check.hits(case(flags={"disable_cuda_graph": True}, pp=2)))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("why:", "wy:", 8, "unknown key 'wy'; did you mean 'why'?"),
        ("severity: error", "severity: fatal", 2, "severity: Input should be 'error', 'warning' or 'info'"),
        ("engine: sglang, ", "", 3, "key 'scope.engine' is missing"),
        ('">=0.5.12"', "new", 3, "'new' is no range of releases"),
        ("triton}\n    found", "{over: 1}}\n    found", 5, "unknown key 'check.0.when.attention_backend.over'"),
        ("{attention_backend: triton}\n", "{facts.heads: 1}\n", 5, "no fact 'facts.heads'; known are context"),
        (
            "{attention_backend: triton}\n",
            "{attention_backend: }\n",
            5,
            "attention_backend: says nothing; write a value",
        ),
        ("  - ultra-post", "  - hearsay", 10, "'hearsay' is no source: write ultra-post, super-post"),
        ("failing: {", "failing: {nods: 1, ", 12, "no launch: "),
        ("fix: ", "computed: parallel.ep_divides\nfix: ", 4, "check holds conditions, or computed names a function"),
        ("check:\n", "computed: parallel.nothing\ncheck:\n", 4, "no function 'parallel.nothing' in judge/rules"),
        ("    at: attention_backend\n", "", 5, "key 'check.0.at' is missing"),
    ],
)
def test_a_slip_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    path = tmp_path / "made-up.yml"
    path.write_text(WHOLE)
    assert load(path).id == "made-up"
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        load(path)
    told = [(problem.file, problem.line) for problem in refused.value.problems if said in problem.message]
    assert told == [(str(path), line)]
