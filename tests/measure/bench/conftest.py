"""A pacing server (a stand-in with known truth) in a process of its own, and `sparkloom bench` against it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.places import REPO

COMMAND = str(Path(sys.executable).with_name("sparkloom"))


class Paced:
    """One server: `bench` runs the command line against it, `truth` is what it really sent."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [COMMAND, "bench", "--url", self.url, "--warmup", "0", "--max-tokens", "24", "-n", "2", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, **options)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def bench(self, *words: str, code: int = 0, **options: Any) -> dict[str, Any]:
        done = self.run(*words, "--json", **options)
        assert done.returncode == code, (done.returncode, done.stderr, done.stdout[:2000])
        return dict(json.loads(done.stdout))

    def truth(self) -> list[dict[str, Any]]:
        asked = urllib.request.Request(f"{self.url}/truth", method="DELETE")
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return list(json.load(answer))


@contextmanager
def serving(*words: str, scheme: str = "http") -> Iterator[Paced]:
    command = [sys.executable, "-m", "testbed", "pacing", *words]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = process.stdout.readline().rsplit(" ", 1)[-1].strip()
            yield Paced(f"{scheme}://localhost:{port}")
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def paced() -> Iterator[Paced]:
    """Fast: 50 ms to the first token, 200 tokens a second."""
    with serving("ttft=0.05", "rate=200") as server:
        yield server
