"""Every shipped SGLang and vLLM command, each rank, put to the real argument parser of its release.

Of a fork's command all but its own flags: lint marks those, one by one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from sparkloom import case
from sparkloom.inputs import profile
from tests.forks import without_own
from tests.places import REPO

pytestmark = pytest.mark.oracle
ROOT = REPO
NO_RELEASE = 3  # the oracle's exit status when the index cannot be reached


def commands() -> dict[tuple[str, str], list[tuple[str, list[str]]]]:
    found = defaultdict(list)
    for name in profile.names():
        launch = case.judge(name).launch
        if launch.engine in ("sglang", "vllm"):
            fork = launch.profile.profile.engine.fork
            found[launch.engine, launch.release] += [
                (f"{name} rank {rank.index}", without_own(rank.argv, fork)) for rank in launch.ranks
            ]
    return found


COMMANDS = commands()


@pytest.mark.parametrize(("engine", "release"), sorted(COMMANDS))
def test_the_real_parser_accepts_every_rank(engine: str, release: str) -> None:
    named = COMMANDS[engine, release]
    asked = "".join(json.dumps(list(argv)) + "\n" for _, argv in named)
    oracle = [sys.executable, "-m", "scripts.oracle", "batch", engine, release]
    ran = subprocess.run(oracle, input=asked, capture_output=True, text=True, cwd=ROOT)
    if ran.returncode == NO_RELEASE:
        pytest.skip(f"NOT CHECKED against the real parser of {engine} {release}: {ran.stderr.strip()}")
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(named), ran.stderr
    wrong = [
        f"{name}: {answer}"
        for (name, _), answer in zip(named, answers, strict=True)
        if not answer["accepted"] or answer["abbreviated"] or answer["deprecated"]
    ]
    assert not wrong, "\n".join(wrong)
