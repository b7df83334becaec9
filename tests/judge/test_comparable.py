"""Two figures beside each other: what spoils a comparison, what it is about, what nobody wrote down."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.judge import comparable, measured_rows
from sparkloom.judge.comparable import Measured

V4 = "deepseek-ai--deepseek-v4-flash"
FACTS: dict[str, Any] = {
    "model": "org/model", "nodes": 2, "tp": 2, "pp": 1, "ep": 1, "transport": "roce", "engine": "vllm",
    "release": "0.32.0", "image": "i:1", "speculation": "mtp 2", "content": "prose", "input": 256, "output": 512,
    "temperature": 0.0, "thinking": False, "counted": "decode",
}  # fmt: skip
ONE = Measured("one", FACTS, {"n1": 40.0})


def other(**facts: Any) -> Measured:
    return replace(ONE, name="other", facts={**FACTS, **facts})


def test_the_same_conditions_are_comparable_and_another_image_is_what_is_compared() -> None:
    assert comparable.compare(ONE, other()).verdict == "comparable"
    found = comparable.compare(ONE, other(image="i:2", engine="sglang"))
    assert (found.verdict, found.spoilt) == ("comparable", ())
    assert found.differs == ("engine: vllm and sglang", "image: i:1 and i:2")


@pytest.mark.parametrize(
    "facts", [{"nodes": 4}, {"counted": "wall"}, {"content": "counting"}, {"output": 1025}, {"temperature": 1.0}]
)
def test_what_was_asked_and_how_many_answered_spoil_it(facts: dict[str, Any]) -> None:
    found = comparable.compare(ONE, other(**facts))
    assert found.verdict == "not comparable" and found.spoilt[0].startswith(f"{next(iter(facts))}: ")


def test_without_drafts_a_text_is_as_good_as_another() -> None:
    plain = replace(ONE, facts={**FACTS, "speculation": None})
    told = replace(plain, facts={**plain.facts, "content": "counting", "temperature": 1.0})
    assert comparable.compare(plain, told).verdict == "comparable"


def test_what_nobody_wrote_down_is_named() -> None:
    found = comparable.compare(ONE, other(content=None, thinking=None))
    assert (found.verdict, found.unknown) == ("comparable with care", ("content", "thinking"))


def test_prose_and_code_of_one_server_are_no_comparison() -> None:
    found = comparable.compare(comparable.named(V4), comparable.named(f"{V4}#2"))
    assert found.one.numbers["n1"] == 46.0 and found.other.numbers["n1"] == 87.0, "the best is the one of plain text"
    assert found.verdict == "not comparable" and "content: prose and code" in found.spoilt


def test_a_measured_row_is_named_by_its_id() -> None:
    row = next(row for row in measured_rows.shipped() if row.get("n8"))
    found = comparable.named(str(row["id"]))
    assert found.facts["nodes"] == row["nnodes"] and found.numbers["n8"] == row["n8"]
    assert found.facts["counted"] == "request", "each request's own tokens per second, summed"


@pytest.mark.parametrize("text", [f"{V4}#9", f"{V4}#x", "no-such-profile"])
def test_another_name_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        comparable.named(text)


def test_the_command_says_it(tmp_path: Any) -> None:
    words = [sys.executable, "-m", "sparkloom.cli", "evidence", "compare", V4, f"{V4}#2"]
    said = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(said)["verdict"] == "not comparable"
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "spoilt by: content: prose and code" in told
