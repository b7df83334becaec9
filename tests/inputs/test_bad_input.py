"""Thousands of spoilt profiles: each refused with a place and a rule, none with a traceback; no sound one refused."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom import case
from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.judge import flags
from tests.inputs import profile_mutations
from tests.later import thrown

ROUNDS = thrown(1000)  # for each mutation; some know fewer ways to go wrong
CLUSTER = case.cluster(None)
# Roots with all parts that mutations take aim at: experts, evidence, an environment, a parser.
SOUND = {
    name: document.load(profile.PROFILES / f"{name}.yml").data
    for name in (
        "nvidia--nemotron-3-ultra-550b-a55b-nvfp4",
        "nvidia--nemotron-3-super-120b-a12b-nvfp4",
        "nvidia--qwen3.5-122b-a10b-nvfp4",
        "nvidia--minimax-m2.5-nvfp4",
    )
}
RELAXED = settings(max_examples=ROUNDS)
seen: Counter[str] = Counter()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spoilt")


def refused(path: Path) -> InputError:
    """The refusal of a file, by the way that every command takes."""
    try:
        flags.require_known(profile.load(path))
    except InputError as error:
        return error
    raise AssertionError(f"accepted:\n{path.read_text()}")


@pytest.mark.parametrize("mutation", profile_mutations.MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_spoilt_profile_is_refused_with_its_place(mutation: profile_mutations.Mutation, folder: Path) -> None:
    path = folder / "own.yml"

    @RELAXED
    @given(st.data(), st.sampled_from(sorted(SOUND)))
    def every(data: st.DataObject, name: str) -> None:
        path.write_bytes(profile_mutations.spoil(data.draw, mutation, SOUND[name]).encode("utf-8", "surrogatepass"))
        lines = path.read_bytes().count(b"\n") + 1
        error = refused(path)
        assert error.problems
        for problem in error.problems:
            assert problem.message and problem.rule
            assert problem.file.endswith((".yml",)), problem
            assert 1 <= problem.line <= lines + 1 and problem.column >= 1, problem
            str(problem).encode()  # printable as it stands
        seen[mutation.__name__] += 1

    every()
    assert [entry.name for entry in folder.iterdir()] == ["own.yml"], "judging a profile writes nothing"


def test_enough_were_tried() -> None:
    if len(seen) < len(profile_mutations.MUTATIONS):
        pytest.skip("runs after all mutations only")
    assert sum(seen.values()) >= thrown(5000), seen


@settings(RELAXED, max_examples=thrown(300))
@given(
    data=st.data(),
    name=st.sampled_from(sorted(SOUND)),
    fraction=st.floats(0.1, 0.95),
    batch=st.integers(1, 512),
    words=st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40),
)
def test_no_sound_profile_is_refused(
    data: st.DataObject, name: str, fraction: float, batch: int, words: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Other values, another order of keys, another style: the same right profile."""
    sound: dict[str, Any] = {key: SOUND[name][key] for key in data.draw(st.permutations(sorted(SOUND[name])))}
    sound["summary"] = words
    sound["launch"] = {**sound["launch"], "mem_fraction_static": fraction, "cuda_graph_max_bs": batch}
    sound["env"] = {**sound.get("env", {}), "MY_OWN": words}
    text = profile_mutations.dump(sound)
    if data.draw(st.booleans()):
        text = "# a comment\n\n" + text.replace("\n", "  # why\n", 1) if ": |" not in text.split("\n", 1)[0] else text
    path = tmp_path_factory.getbasetemp() / "sound.yml"
    path.write_text(text, encoding="utf-8")
    assert case.plan(str(path), CLUSTER)["launch"]["ranks"]


@pytest.mark.parametrize("name", profile.names())
def test_every_shipped_profile_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    """What the loader read, written by a YAML library, is read as the same."""
    loaded = profile.load(name)
    path = tmp_path / "again.yml"
    path.write_text(profile_mutations.dump({**loaded.document.data, "extends": None}))
    assert profile.load(path).profile.model_copy(update={"extends": None}) == loaded.profile.model_copy(
        update={"extends": None}
    )


@pytest.mark.parametrize("command", ["lint", "plan", "argv --rank 0", "env --rank 0", "render"])
def test_the_command_line_says_it_in_one_line_and_exits_with_2(command: str, tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text("summary: x\nmodle: {}\n")
    ran = subprocess.run(
        [sys.executable, "-m", "sparkloom.cli", *command.split(), str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 2, ran.stderr
    said = ran.stdout + ran.stderr
    assert "own.yml:2:1" in said and "modle" in said
    assert "Traceback" not in said
    assert [entry.name for entry in tmp_path.iterdir()] == ["own.yml"]
