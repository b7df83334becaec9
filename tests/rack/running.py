"""Programs of the venv, run from the repository as a person would."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{REPO}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(argv, cwd=REPO, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)
