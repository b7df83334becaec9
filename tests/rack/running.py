"""Programs of the venv, run from the repository as a person would."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from testbed.beds.rack import inventory
from tests.places import REPO

# What `make test` has no hour for.
SKIPPED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_MORE"), reason="make test-more, or SPARKLOOM_MORE=1")
LATER = [pytest.mark.more, SKIPPED]


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{REPO}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(argv, cwd=REPO, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)


def told() -> dict[str, Any]:
    """What `sparkloom status` says of the rack."""
    done = run("sparkloom", "status", "-i", str(inventory.path()), "--json")
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
