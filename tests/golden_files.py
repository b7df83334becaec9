"""Golden files: what a profile rendered to when somebody last looked at it.

    SPARKLOOM_UPDATE_GOLDEN=1 .venv/bin/pytest -q tests -k golden     # write them anew, then read the diff

One folder per profile, tests/golden/<profile>/; a test compares with `check(profile, file, text)`.
"""

from __future__ import annotations

import difflib
import os

from tests.places import REPO

GOLDEN = REPO / "tests/golden"
UPDATE = "SPARKLOOM_UPDATE_GOLDEN"


def check(profile: str, file: str, text: str) -> None:
    """Fails with a diff unless the golden file says exactly `text`; writes it when asked to."""
    path = GOLDEN / profile / file
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"no golden file {path}; write it with {UPDATE}=1"
    before = path.read_text(encoding="utf-8")
    if before != text:
        diff = difflib.unified_diff(before.splitlines(), text.splitlines(), str(path), "rendered now", lineterm="", n=2)
        shown = "\n".join(list(diff)[:80])
        raise AssertionError(f"{path} differs; if this is meant, run again with {UPDATE}=1 and commit it\n{shown}")
