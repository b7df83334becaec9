"""What the inventory may say is served, and where a mistake in it is said to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, serving
from sparkloom.launch import fleet_record

CLUSTER = inventory.load()
QWEN, OSS = "radixark--qwen3.8-27b-nvfp4", "openai--gpt-oss-120b"


def read(text: str) -> serving.Serving:
    return serving.of_document(document.parse(text, "cluster.yml"), CLUSTER)


def refused(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


def turn(*said: str) -> str:
    """A list of groups that take turns, each with so much more said of it."""
    entries = [
        f"  - {{profile: {OSS}, name: g{number}, idle_minutes: 5, turns: t{', ' if more else ''}{more}}}\n"
        for number, more in enumerate(said)
    ]
    return "".join(["serve:\n", *entries])


def test_one_profile_is_read_as_ever() -> None:
    one = read(f"profile: {QWEN}\n")
    assert [entry.called for entry in one.entries] == [QWEN] and not one.listed
    assert one.where(0) == "cluster.yml:1:1"
    shipped = serving.load(None, CLUSTER)
    assert len(shipped.entries) == 1 and not shipped.listed


def test_a_list_has_names_and_mappings() -> None:
    text = f"""\
serve:
  - {OSS}
  - profile: {QWEN}
    name: small
    alias: qwen
    fraction: 0.4
    nodes: [spark3]
    idle_minutes: 15
    turns: mine
  - {{profile: {QWEN}--2node, nodes: 2}}
"""
    first, second, third = read(text).entries
    assert first.called == OSS and first.fraction is None and first.count is None
    assert (second.called, second.alias, second.fraction, second.pinned) == ("small", "qwen", 0.4, ("spark3",))
    assert (second.idle_minutes, second.turns, second.on_demand) == (15, "mine", True) and not first.on_demand
    assert third.count == 2 and third.pinned == ()


def test_who_takes_turns_may_leave_the_place_to_another_of_the_turn() -> None:
    text = turn("nodes: [spark2, spark1]", "", "nodes: 2", "nodes: [spark2, spark1]")
    assert [entry.turns for entry in read(text).entries] == ["t"] * 4


def test_an_empty_list_serves_nothing() -> None:
    assert read("serve: []\n").entries == ()


def test_ansible_hands_over_the_same() -> None:
    given = serving.from_vars({"profile": OSS, "serve": [OSS, {"profile": QWEN, "fraction": 0.5}]}, CLUSTER)
    assert [entry.called for entry in given.entries] == [OSS, QWEN]
    assert not serving.from_vars({"profile": OSS, "serve": None}, CLUSTER).listed


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("cluster: {}\n", "1:1", "write profile: NAME, or serve:"),
        (f"serve: {OSS}\n", "1:1", "expected a list of profiles"),
        (f"serve:\n  profile: {OSS}\n", "1:1", "put a dash before each entry"),
        ("serve:\n  -\n", "2:4", "dictionary"),
        (f"serve:\n  - profile: {OSS}\n    fration: 0.4\n", "3:5", "'serve.0.fration'; did you mean 'fraction'?"),
        ("serve:\n  - {name: a}\n", "2:5", "key 'serve.0.profile' is missing"),
        ("serve:\n  - openai--gpt-oss-120\n", "2:5", f"did you mean '{OSS}'?"),
        ("serve:\n  - profile: ./nothing.yml\n", "2:5", "no such file"),
        (f"serve:\n  - {{profile: {OSS}, fraction: 1.5}}\n", "2:", "expected the share of a Spark's memory"),
        (f"serve:\n  - {{profile: {OSS}, fraction: half}}\n", "2:", "serve.0.fraction"),
        (f"serve:\n  - {{profile: {OSS}, nodes: 9}}\n", "2:", "expected how many Sparks (1 to 8), or their names"),
        (f"serve:\n  - {{profile: {OSS}, nodes: true}}\n", "2:", "expected how many Sparks"),
        (f"serve:\n  - {{profile: {OSS}, nodes: []}}\n", "2:", "expected how many Sparks"),
        (f"serve:\n  - profile: {OSS}\n    nodes: [spark1, sprak2]\n", "3:21", "did you mean 'spark2'?"),
        (f"serve:\n  - profile: {OSS}\n    nodes: [spark1, spark1]\n", "3:21", "spark1 stands there twice"),
        (f"serve:\n  - {OSS}\n  - {OSS}\n", "3:5", f"both would have an object {OSS}; write another `name:`"),
        (f"serve:\n  - {{profile: {OSS}, name: router}}\n", "2:", "called router, as a Service of this site's own is"),
        (f"serve:\n  - {{profile: {OSS}, name: waker}}\n", "2:", "called waker, as a Service of this site's own is"),
        (f"serve:\n  - {{profile: {OSS}, name: a}}\n  - {{profile: {QWEN}, name: a-rank}}\n", "3:", "an object a-rank"),
        (f"serve:\n  - {{profile: {OSS}, name: Big One}}\n", "2:", "serve.0.name"),
        (f"serve:\n  - {{profile: {OSS}, alias: m}}\n  - {{profile: {QWEN}, alias: m}}\n", "3:", "clients could mean"),
        (f"serve:\n  - {{profile: {OSS}, alias: ' m'}}\n", "2:", "without spaces around it"),
        (f"serve:\n  - {{profile: {OSS}, idle_minutes: 0}}\n", "2:", "minutes without a request it stops, 1 to 1440"),
        (f"serve:\n  - {{profile: {OSS}, idle_minutes: 1441}}\n", "2:", "minutes without a request it stops"),
        (f"serve:\n  - {{profile: {OSS}, idle_minutes: true}}\n", "2:", "minutes without a request it stops"),
        (f"serve:\n  - {{profile: {OSS}, idle_minutes: 1.5}}\n", "2:", "minutes without a request it stops"),
        (f"serve:\n  - profile: {OSS}\n    turns: t\n", "3:5", "turns: t needs `idle_minutes:` beside it"),
        (f"serve:\n  - {{profile: {OSS}, idle_minutes: 5, turns: My Turn}}\n", "2:", "serve.0.turns"),
        (turn("fraction: 0.4", "fraction: 0.5"), "3:", "fraction: 0.5, and entry 1 of turn t has fraction: 0.4"),
        (turn("fraction: 0.4", ""), "3:", "no fraction, and entry 1 of turn t has fraction: 0.4"),
        (turn("nodes: [spark1]", "nodes: [spark2]"), "3:", "[spark2], and entry 1 of turn t has [spark1]"),
        (turn("nodes: [spark1]", "", "nodes: [spark2]"), "4:", "[spark2], and entry 1 of turn t has [spark1]"),
        (turn("", "nodes: [spark1]", "nodes: [spark2]"), "4:", "[spark2], and entry 2 of turn t has [spark1]"),
        (f"serve: [{OSS}]\nprofile: {QWEN}\n", "2:1", "is not in serve:"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_at_its_place(text: str, place: str, words: str) -> None:
    (problem,) = refused(text)
    assert problem.startswith(f"cluster.yml:{place}") and words in problem, problem


def test_all_mistakes_are_said_at_once() -> None:
    text = f"serve:\n  - nobody--nothing\n  - {{profile: {OSS}, nodes: [spark9]}}\nprofile: {QWEN}\n"
    assert len(refused(text)) == 3


def test_profile_beside_a_list_is_one_of_it() -> None:
    assert read(f"serve: [{OSS}, {QWEN}]\nprofile: {QWEN}\n").listed


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"groups": 1}', '{"groups": [{"name": "a"}]}', '{"groups": [7]}'])
def test_what_is_no_record_is_refused_by_name(content: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    file.write_text(content)
    with pytest.raises(InputError, match=r"fleet\.json: no record of groups"):
        fleet_record.read(file)


def test_a_record_that_is_not_there_is_none_unless_it_was_named(tmp_path: Path) -> None:
    assert fleet_record.read(tmp_path / "none.json") == {}
    with pytest.raises(InputError, match="no such file"):
        fleet_record.read(tmp_path / "none.json", must=True)


def test_a_record_of_groups_that_are_nowhere_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps({"groups": [{"name": "a", "profile": OSS, "nodes": []}]}))
    assert fleet_record.read(file) == {}
