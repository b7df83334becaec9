"""What cannot be read is said by name, as JSON too, with status 2; a reader who leaves does not change a verdict."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import DATA

COMMAND = [sys.executable, "-m", "sparkloom.cli"]
SOCKETS = str(DATA / "nccl" / "real" / "socket-lo.log")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "words",
    [("nccl-log", "FILE"), ("diagnose", "FILE"), ("guard", "FILE"), ("guard", "--batch", "FILE"), ("plan", "FILE")],
)
@pytest.mark.parametrize("kind", ["loop", "missing", "empty"])
def test_json_says_what_is_unusable(tmp_path: Path, words: tuple[str, ...], kind: str) -> None:
    path = tmp_path / "input.yml"
    if kind == "loop":
        path.symlink_to(path.name)
    elif kind == "empty":
        path.write_text("")
    done = run(*(str(path) if word == "FILE" else word for word in words), "--json")
    assert done.returncode == 2 and "bug" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["error"] == "unusable input" and str(path) in told["problems"][0]["file"]
    assert told["problems"][0]["message"] in done.stderr


def test_lint_does_not_say_no_findings_of_what_it_could_not_read(tmp_path: Path) -> None:
    (tmp_path / "loop.yml").symlink_to("loop.yml")
    done = run("lint", str(tmp_path / "none.yml"), str(tmp_path / "loop.yml"))
    assert done.returncode == 2 and "no findings" not in done.stdout
    assert "2 profiles could not be judged" in done.stdout
    mixed = run("lint", "nvidia--glm-4.7-nvfp4", str(tmp_path / "none.yml"))
    assert "1 profile: " in mixed.stdout and "1 profile could not be judged" in mixed.stdout


@pytest.mark.parametrize("words", [("nccl-log", SOCKETS), ("nccl-log", SOCKETS, "--json"), ("diagnose", "LOG")])
def test_a_closed_pipe_keeps_the_verdict(tmp_path: Path, words: tuple[str, ...]) -> None:
    log = tmp_path / "engine.log.gz"
    log.write_bytes(gzip.compress(b"RuntimeError: cuDNN is not available.\n"))
    command = [*COMMAND, *(str(log) if word == "LOG" else word for word in words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout and program.stderr
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(60) == 1
