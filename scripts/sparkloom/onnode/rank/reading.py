"""The files that a rank was given, as it read them: a pod can be made between an edit by hand and its correction.

Its annotation names what was applied and stays right while the files are not, so each rank tells what it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

PROGRAM, PLAN, PATTERNS = "rank", "plan.json", "rules.json"


def digest(files: Mapping[str, bytes], length: int = 16) -> str:
    """Over path and content; the same on the controller that rendered them."""
    total = hashlib.sha256()
    for path, content in sorted(files.items()):
        total.update(f"{path}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:length]


def seen(plan: Path, program: Path, given: Iterable[str]) -> str:
    """The plan with the patterns beside it, this program, and every file that the plan names."""
    ours = {PLAN: plan, PATTERNS: plan.with_name(PATTERNS), PROGRAM: program}
    files = ours | {path: Path(path) for path in given}
    return digest({name: _content(file) for name, file in files.items()})


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # not there is another content than planned
        return b""
