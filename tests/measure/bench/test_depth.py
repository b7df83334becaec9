"""Prompts of any length: what is shared, what is not, as long as was asked; and the file for Spark Arena."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from sparkloom.measure.bench import depth, tools
from sparkloom.measure.bench.depth import Depth
from sparkloom.measure.bench.exchange import Exchange, Limits
from sparkloom.measure.bench.request import Request
from tests.measure.bench.conftest import Paced


def start(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_without_depth_the_question_is_all() -> None:
    assert depth.prompt("Why?", Depth(), 1, 0, 1.3) == "Why?"


@pytest.mark.parametrize(("prefix", "least", "most"), [(0.0, 0.0, 0.05), (0.5, 0.45, 0.55), (0.9, 0.85, 0.95)])
def test_only_the_prefix_is_shared(prefix: float, least: float, most: float) -> None:
    asked = Depth(4000, prefix)
    texts = [depth.prompt("Why?", asked, 1, number, 1.25) for number in (0, 1, -1)]
    assert len(set(texts)) == 3 and all(text.endswith("Why?") for text in texts)
    for other in texts[1:]:
        assert least <= start(texts[0], other) / len(texts[0]) <= most
    assert len(texts[0].split()) == pytest.approx(4000 / 1.25, rel=0.02)
    assert depth.prompt("Why?", asked, 1, 0, 1.25) == texts[0] != depth.prompt("Why?", asked, 2, 0, 1.25)


def test_every_depth_is_a_level_and_as_long_as_was_asked(paced: Paced) -> None:
    data = paced.bench("-n", "1,2", "--depth", "0,2k", "--prefix", "0.9", "--warmup", "8")
    assert [(level["depth"], level["concurrency"]) for level in data["levels"]] == [
        (0, 1),
        (0, 2),
        (2048, 1),
        (2048, 2),
    ]
    deep = data["levels"][-1]
    assert deep["prompt_tokens"] == pytest.approx(2048 + data["levels"][0]["prompt_tokens"], rel=0.1)
    assert deep["prompt_tok_s"] > 0 and deep["prefix"] == 0.9
    assert data["provenance"]["settings"]["depths"] == [0, 2048]
    prompts = [record["prompt"] for record in paced.truth()][-3:]  # a warm-up and two of the last level
    assert len(set(prompts)) == 3
    assert all(0.8 < start(prompts[0], other) / len(prompts[0]) < 0.97 for other in prompts[1:])


def test_the_table_says_how_long_the_prompts_were(paced: Paced) -> None:
    done = paced.run("--depth", "1k")
    assert done.returncode == 0 and "n=2 d=1024" in done.stdout and "prompts of 1," in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--depth", "12q"), "'12q' is no number of tokens"),
        (("--prefix", "0.5"), "a share of --depth"),
        (("--depth", "1k", "--prefix", "1.5"), "is no share"),
    ],
)
def test_what_cannot_be_is_refused(paced: Paced, words: tuple[str, ...], said: str) -> None:
    done = paced.run(*words)
    assert done.returncode == 2 and said in done.stderr


def test_the_file_for_spark_arena(paced: Paced, tmp_path: Path) -> None:
    file = tmp_path / "benchmark.csv"
    done = paced.run("-n", "1,2", "--depth", "0,1k", "--prompt-tokens", "512", "--submit", str(file))
    assert done.returncode == 0 and "for Spark Arena" in done.stderr
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0])[:6] == ["model", "test_name", "t_s_mean", "t_s_std", "t_s_req_mean", "t_s_req_std"]
    assert len(rows) == 8
    names = [row["test_name"] for row in rows]
    assert names[1] == "tg24 (c1)" and names[-1] == "tg24 @ d1024 (c2)" and names[-2].startswith("pp")
    for row in rows:
        assert float(row["t_s_mean"]) > 0 and float(row["t_s_req_mean"]) > 0
        assert bool(row["e2e_ttft_mean"]) == row["test_name"].startswith("pp")
    assert float(rows[0]["e2e_ttft_mean"]) >= 50


def call(name: str, arguments: str) -> list[list[str]]:
    return [[name, arguments[:7], arguments[7:]]]


@pytest.mark.parametrize(
    ("calls", "wrong"),
    [
        (call("get_tide", '{"harbour": "Emden", "date": "2027-05-03"}'), ""),
        (call("convert", '{"amount": 12.5, "from_unit": "lb", "to_unit": "kg"}'), ""),
        (call("book_table", '{"restaurant": "Three Lindens", "guests": 5, "time": "19:30"}'), ""),
        ([], "no tool was called"),
        (call("get_weather", "{}"), "no tool has that name"),
        (call("get_tide", '{"harbour": "Emden", "date"'), "arguments are no JSON"),
        (call("get_tide", '["Emden"]'), "arguments are no object"),
        (call("get_tide", '{"harbour": "Emden"}'), "an argument is missing"),
        (call("get_tide", '{"harbour": "E", "date": "x", "sea": 1}'), "an argument that the tool has not"),
        (call("book_table", '{"restaurant": "A", "guests": "five"}'), "an argument of another type"),
        (call("book_table", '{"restaurant": "A", "guests": true}'), "an argument of another type"),
        (
            call("convert", '{"amount": 1, "from_unit": "lb", "to_unit": "stone"}'),
            "a value that the tool does not list",
        ),
    ],
)
def test_a_call_that_a_program_could_carry_out(calls: list[list[str]], wrong: str) -> None:
    assert tools.judge(calls) == wrong


def test_calls_are_read_from_the_stream_whole() -> None:
    """Name in the first event, arguments in pieces, a second call behind it; pieces alike are taken by their bytes."""
    request = Request(0, "p", b"", 0.0)
    exchange = Exchange(request, Limits(), lambda _: None)
    parts = [{"name": "get_tide", "arguments": ""}] + [{"arguments": piece} for piece in ("{", '"a', '":', " 1", "}")]
    parts += [{"name": "convert", "arguments": "{}"}]
    events = [
        b"data: "
        + json.dumps({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": part}]}}]}).encode()
        + b"\n\n"
        for part in parts
    ]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    arrivals = [head] + [b"%x\r\n%b\r\n" % (len(event), event) for event in [*events, b"data: [DONE]\n\n"]]
    for at, data in enumerate([*arrivals, b"0\r\n\r\n"]):
        exchange.feed(data, float(at))
    exchange.read()
    assert request.ok, request.detail
    assert [(name, "".join(pieces)) for name, *pieces in request.calls] == [("get_tide", '{"a": 1}'), ("convert", "{}")]


def test_a_level_counts_its_tool_calls(paced: Paced) -> None:
    """The pacing server answers in words: no call, and the run is valid all the same."""
    data = paced.bench("--tools")
    assert data["levels"][0]["tool_calls"] == {"answers": 2, "valid": 0, "wrong": {"no tool was called": 2}}
    done = paced.run("--tools")
    assert "0 of 2 answers are tool calls that can be carried out; 2: no tool was called" in done.stdout
