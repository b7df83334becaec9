"""What a parser becomes in a catalog, and what is refused instead of guessed."""

from __future__ import annotations

import argparse
import json

import pytest

from scripts.oracle import catalog, describe, stubs
from scripts.oracle.verdict import RaisingParser, judge


def parser() -> RaisingParser:
    result = RaisingParser(prog="engine")
    result.add_argument("--model-path", "--model", required=True)
    result.add_argument("--size", dest="other_size", type=int, default=1)
    result.add_argument("--mode", choices=["b", "a"])
    result.add_argument("--sizes", type=int, nargs="+")
    result.add_argument("--quiet", action="store_true")
    result.add_argument("--extra", type=json.loads)
    result.add_argument("--cache", default="/home/somebody/cache")
    result.add_argument("--graphs", action=argparse.BooleanOptionalAction)
    result.add_argument("--old-mode", action="store_true", help="(Deprecated: use --mode instead)")
    return result


def test_a_line_says_only_what_is_special() -> None:
    flags = describe.flags_of(parser())
    assert flags["--model-path"] == {"also": ["--model"], "required": True}
    assert flags["--size"] == {"dest": "other_size", "type": "int", "default": 1}
    assert flags["--mode"] == {"choices": ["a", "b"]}
    assert flags["--sizes"] == {"type": "int", "nargs": "+"}
    assert flags["--quiet"] == {"action": "true"}
    assert flags["--extra"] == {"type": "json"}
    assert flags["--cache"] == {}
    assert flags["--graphs"] == {"action": "toggle", "off": ["--no-graphs"]}
    assert flags["--old-mode"] == {"action": "true", "deprecated": "--mode"}


def test_an_unknown_type_or_action_is_named_and_not_guessed() -> None:
    strange = RaisingParser()
    strange.add_argument("--strange", type=lambda text: text * 2)
    with pytest.raises(describe.UnknownShape, match="--strange"):
        describe.flags_of(strange)


def test_a_stub_among_the_choices_is_refused() -> None:
    leaky = RaisingParser()
    leaky.add_argument("--leaky", choices=[stubs.make_stub("torch", "float16")])
    with pytest.raises(describe.UnknownShape, match="a stub reached its choices"):
        describe.flags_of(leaky)


def test_the_text_is_sorted_and_has_one_flag_per_line() -> None:
    whole = {"engine": "e", "version": "1", "source": "s", "entry": [], "positionals": []}
    facts = {"registries": {}, "flags": {"--b": {}, "--a": {"type": "int"}}, "env": {"X": {}}}
    text = catalog.dump(whole | facts)
    assert json.loads(text) == whole | facts
    assert text.index('"--a": {"type":"int"},\n') < text.index('"--b": {}\n')


def test_a_verdict_carries_the_engines_words_and_values() -> None:
    one = parser()
    refused = judge([one], one.parse_args, ["--model", "m", "--size", "x"])
    assert not refused.accepted and refused.error == "argument --size: invalid int value: 'x'"
    taken = judge([one], one.parse_args, ["--model", "m", "--siz", "3"])
    assert taken.error == "ambiguous option: --siz could match --size, --sizes"
    short = judge([one], one.parse_args, ["--model-p", "m", "--quiet"])
    assert short.accepted and short.abbreviated == ["--model-p -> --model-path"] and short.values["quiet"] is True
    assert "values" not in short.as_dict() and short.as_dict(with_values=True)["values"]["model_path"] == "m"
    assert judge([one], one.parse_args, ["--help"]).error == "exits without serving"
