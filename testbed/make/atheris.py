"""Atheris, the coverage-guided fuzzer for Python (Apache-2.0), for `make test-fuzz` alone."""

from __future__ import annotations

import sys
from pathlib import Path

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact

VERSION = "3.0.0"
SHA256 = (  # it has wheels for x86_64 alone: Python 3.11, 3.12, 3.13
    "8a5c8a781467c187da40fd29139784193e2647058831f837f675d0bb8cbd8746",
    "510e502c57b6dc615fb174066407af620d4c7f73cf08a782c86e7761bf12c4eb",
    "a402cdca8a650d1371050b1f9552eb4cdc488d2db64950d603c4560318365eac",
)


def _inputs() -> list[store.Part]:
    return [VERSION, f"{sys.version_info[0]}.{sys.version_info[1]}"]


def _build(work: Path, say: Say) -> None:
    say("fetching the wheel")
    pins = work / "pins.txt"
    hashes = " ".join(f"--hash=sha256:{one}" for one in SHA256)
    pins.write_text(f"atheris=={VERSION} {hashes}\n")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    run([*pip, "--require-hashes", "--only-binary=:all:", "--target", work / "site", "-r", pins], timeout=600)


def place() -> Path:
    """What goes into PYTHONPATH."""
    return store.place("atheris", store.key_of(_inputs())) / "site"


def steps() -> list[Step]:
    return [artefact("atheris", f"fetches atheris {VERSION}, which fuzzes by coverage", _inputs, _build)]
