"""`profile new` and `profile check` as a person calls them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.public_models import folder

COMMAND = [str(Path(sys.executable).with_name("sparkloom")), "profile"]
OSS = str(folder("openai--gpt-oss-120b"))


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, env={**os.environ, **env})
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def test_new_prints_a_profile_and_says_what_it_could_not_know() -> None:
    done = run("new", OSS)
    assert done.returncode == 0
    data = yaml.safe_load(done.stdout)
    assert data["model"]["id"] == "openai/gpt-oss-120b" and data["launch"]["parallel"]["nodes"] == 1
    assert "fits on 1 Spark, " in done.stderr and "~ no index and no weights" in done.stderr


def test_new_writes_a_file_once(tmp_path: Path) -> None:
    file = tmp_path / "mine/oss.yml"
    assert run("new", OSS, "-o", str(file)).returncode == 0
    again = run("new", OSS, "-o", str(file))
    assert again.returncode == 2 and "is there already" in again.stderr
    lint = subprocess.run([COMMAND[0], "lint", str(file)], capture_output=True, text=True, timeout=300)
    assert lint.returncode == 0, lint.stdout


def test_new_as_data() -> None:
    data = json.loads(run("new", OSS, "--nodes", "2", "--json").stdout)
    assert {"name", "profile", "sources", "unknown", "fits", "placement", "asked", "findings", "file"} <= set(data)
    assert data["placement"]["parallel"]["nodes"] == 2 and data["file"] is None


def test_new_takes_three_seconds_at_most() -> None:
    """Of processor time: the machine of the tests does other things meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("new", str(folder("nvidia--MiniMax-M3-NVFP4")))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3.0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("new", "no-such-folder"), "neither a folder of this machine nor a hub id"),
        (("new", OSS, "--nodes", "9"), "'9' should be less than or equal to 8"),
        (("new", OSS, "--engine", "exllama"), "is none of"),
        (("check", "no-such-profile", "--against", OSS), "no such profile"),
    ],
)
def test_what_cannot_be_used_is_refused_with_2(words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert done.returncode == 2 and says in done.stderr


def test_without_a_hub_the_way_out_is_a_folder() -> None:
    done = run("new", "acme/model", HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 2 and "name a folder with the model's config.json" in done.stderr


def test_a_hub_s_address_that_is_none_is_named() -> None:
    """The hub's client ended as it was imported: status 70."""
    done = run("new", "acme/model", HF_ENDPOINT="http://[[x")
    assert done.returncode == 2 and "HF_ENDPOINT: 'http://[[x' is no address of a hub" in done.stderr


def test_check_agrees_with_a_right_profile_and_not_with_a_wrong_one(tmp_path: Path) -> None:
    file = tmp_path / "oss.yml"
    run("new", OSS, "-o", str(file))
    assert run("check", str(file), "--against", OSS).returncode == 0
    file.write_text(file.read_text().replace("hidden: 2880", "hidden: 2808"))
    wrong = run("check", str(file), "--against", OSS)
    assert wrong.returncode == 1 and "model.hidden is 2808; the checkpoint has 2880" in wrong.stdout
