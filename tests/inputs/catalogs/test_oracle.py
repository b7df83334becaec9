"""Our judge against the engines' own parsers, and committed catalogs against fresh ones. One process per release."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from scripts.oracle import fetch
from sparkloom.inputs.catalogs import argv as command_line
from sparkloom.inputs.catalogs.releases import FOLDER, releases
from sparkloom.launch import engines
from tests.inputs.catalogs.cases import Case, cases
from tests.inputs.catalogs.mutations import command_lines
from tests.later import LATER
from tests.places import REPO

ROOT = REPO
# Of each engine the oldest and the newest; those between them change only by a new hand on all of them.
PAIRS = [
    pytest.param(engine, release, marks=[] if release in (known[0], known[-1]) else LATER)
    for engine in ("sglang", "vllm")
    for known in [releases(engine)]
    for release in known
]
RANDOM_LINES = 200
UNREACHABLE: list[str] = []  # an index that did not answer once is not asked fifteen times more

pytestmark = pytest.mark.oracle


@dataclass(frozen=True)
class Answer:
    """What one release said: to the shared cases, to random command lines, and as a catalog."""

    cases: list[dict[str, Any]]
    random: list[dict[str, Any]]
    catalog: str


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("catalogs")


def ask(engine: str, release: str, folder: Path) -> Answer:
    """Skips, with pip's own words, where the release cannot be had: not checked is not passed."""
    answer = _ask(engine, release, folder)
    if isinstance(answer, str):
        pytest.skip(
            f"NOT CHECKED against the real parser of {engine} {release}; its wheel could not be fetched: {answer}"
        )
    return answer


@lru_cache
def _ask(engine: str, release: str, folder: Path) -> Answer | str:
    if UNREACHABLE and not fetch.is_fetched(engine, release):
        return UNREACHABLE[0]
    listed = [case.argv for case in cases(engine)]
    random = command_lines(engines.catalog(engine, release), RANDOM_LINES, seed=len(release))
    fresh = folder / f"{engine}-{release}.json"
    done = subprocess.run(
        [sys.executable, "-m", "scripts.oracle", "batch", engine, release, "--catalog", str(fresh)],
        input="\n".join(json.dumps(argv) for argv in [*listed, *random]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode == 3:
        UNREACHABLE.append(done.stderr)
        return done.stderr
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(verdicts) == len(listed) + len(random)
    return Answer(verdicts[: len(listed)], verdicts[len(listed) :], fresh.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("engine", "release"), PAIRS)
def test_the_engine_says_what_the_case_list_says(engine: str, release: str, folder: Path) -> None:
    answer = ask(engine, release, folder)
    wrong = [
        line
        for case, verdict in zip(cases(engine), answer.cases, strict=True)
        for line in differences(case, verdict, release)
    ]
    assert not wrong, "\n".join(wrong)


def differences(case: Case, verdict: dict[str, Any], release: str) -> list[str]:
    accepted = case.holds("accepted", release)
    wrong = []
    if verdict["accepted"] != accepted:
        wrong.append(f"{case.id}: listed accepted={accepted}, the engine says {verdict['error'] or 'yes'}")
    for word in ("deprecated", "abbreviated"):
        if accepted and case.holds(word, release) != bool(verdict[word]):
            wrong.append(f"{case.id}: listed {word}={case.holds(word, release)}, the engine says {verdict[word]}")
    message = None if accepted else case.text("error", release)
    if message and message not in (verdict["error"] or ""):
        wrong.append(f"{case.id}: listed '{message}', the engine says '{verdict['error']}'")
    return wrong


@pytest.mark.parametrize(("engine", "release"), PAIRS)
def test_our_judge_agrees_with_the_engine_on_random_lines(engine: str, release: str, folder: Path) -> None:
    answer, catalog = ask(engine, release, folder), engines.catalog(engine, release)
    lines = command_lines(catalog, RANDOM_LINES, seed=len(release))
    wrong = []
    for argv, verdict in zip(lines, answer.random, strict=True):
        problems = command_line.check(catalog, argv)
        if verdict["accepted"] == any(problem.rejected for problem in problems):
            wrong.append(f"{argv}\n  engine: {verdict['error'] or 'accepts'}\n  ours: {[p.message for p in problems]}")
        elif verdict["accepted"] and bool(verdict["abbreviated"]) != any(p.kind == "abbreviated" for p in problems):
            wrong.append(f"{argv}\n  engine: {verdict['abbreviated']}\n  ours: {[p.message for p in problems]}")
    assert not wrong, "\n".join(wrong)
    refused = sum(not verdict["accepted"] for verdict in answer.random)
    assert 0.2 < refused / len(lines) < 0.8, f"{refused} of {len(lines)} refused: too one-sided to show anything"


@pytest.mark.parametrize(("engine", "release"), PAIRS)
def test_the_committed_catalog_is_what_the_release_says(engine: str, release: str, folder: Path) -> None:
    fresh = ask(engine, release, folder).catalog
    committed = (FOLDER / f"{engine}-{release}.json").read_text(encoding="utf-8")
    changed = sorted(set(fresh.splitlines()) ^ set(committed.splitlines()))
    assert fresh == committed, "regenerate with python -m scripts.oracle catalog; lines that differ:\n" + "\n".join(
        changed[:20]
    )


@pytest.mark.parametrize(("engine", "release"), [("sglang", "0.5.12"), ("vllm", "0.19.0")])
def test_a_copied_folder_judges_with_nothing_else_installed(
    engine: str, release: str, folder: Path, tmp_path: Path
) -> None:
    """As the stand-in engine's image does: this package, the release, the small dependencies, the standard library."""
    ask(engine, release, folder)
    shutil.copytree(ROOT / "scripts" / "oracle", tmp_path / "oracle")
    needs, source = fetch.dependency_dir(engine), fetch.release_dir(engine, release)
    program = f"""
import json, sys
from pathlib import Path
sys.path[:0] = [{str(tmp_path)!r}, {str(needs)!r}]
from oracle.release import Release
release = Release({engine!r}, {release!r}, Path({str(source)!r}))
print(json.dumps([release.judge(argv).accepted for argv in json.loads(sys.stdin.read())]))
"""
    listed = cases(engine)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        input=json.dumps([case.argv for case in listed]),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [case.holds("accepted", release) for case in listed]
