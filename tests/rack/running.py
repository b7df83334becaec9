"""Programs of the venv, run from the repository as a person would."""

from __future__ import annotations

import os
import subprocess

from tests.places import REPO


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{REPO}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(argv, cwd=REPO, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)
