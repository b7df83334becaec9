"""Programs of the venv, run from the repository as a person would."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from sparkloom.base import document
from sparkloom.inputs import profile
from testbed.beds.rack import inventory
from tests.places import REPO


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{REPO}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(argv, cwd=REPO, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)


def by_tag(shipped: str, folder: Path) -> str:
    """A profile, or a copy that leaves out the digest: no stand-in can have the one of the image that it stands for."""
    if not profile.load(shipped).profile.engine.digest:
        return shipped
    data = document.load(profile.PROFILES / f"{shipped}.yml").data
    data.setdefault("engine", {})["digest"] = None
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{shipped}--by-tag.yml"
    copy.write_text(yaml.safe_dump(data))
    return str(copy)


def site_status() -> dict[str, Any]:
    """What `sparkloom status` says of the rack."""
    done = run("sparkloom", "status", "-i", str(inventory.path()), "--json")
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
