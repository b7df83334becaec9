"""The search for secrets finds one wherever it can be."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

from testbed.trials import leaks

SECRET = secrets.token_hex(20)


def seen(*argv: str, **env: str) -> list[str]:
    watch = leaks.Watch()
    process = subprocess.Popen(argv, env={**os.environ, **env}, stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        watch.look()
    finally:
        process.kill()
        process.wait()
        process.stdout and process.stdout.close()
    return watch.hits([SECRET])


def test_a_command_line() -> None:
    assert seen("sh", "-c", "echo ready; while sleep 1; do :; done", SECRET) == ["command line of sh"]


def test_an_environment_counts_where_it_is_not_the_persons_own() -> None:
    words = ("sh", "-c", "echo ready; while sleep 1; do :; done")
    assert seen(*words, HF_TOKEN=SECRET) == []
    if os.geteuid() == 0:
        assert "environment of sh" in seen("unshare", "--mount", *words, HF_TOKEN=SECRET)


def test_a_file_but_for_those_that_are_meant_to_hold_it(tmp_path: Path) -> None:
    for name in ("key", "manifest.yaml"):
        (tmp_path / name).write_text(f"api-key: {SECRET}")
    assert leaks.in_folder(tmp_path, [SECRET], but=[tmp_path / "key"]) == [str(tmp_path / "manifest.yaml")]


def test_a_short_one_is_no_canary() -> None:
    with pytest.raises(ValueError, match="short"):
        leaks.found("text", ["text"])
