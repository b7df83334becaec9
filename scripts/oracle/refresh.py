"""Writes the committed catalogs anew, one process per release. Catalogs kept by hand are left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .fetch import REAL_DEPENDENCIES

CATALOGS = Path(__file__).resolve().parent.parent / "sparkloom" / "inputs" / "catalogs" / "data"


def known(folder: Path = CATALOGS) -> list[tuple[str, str]]:
    pairs = (path.stem.split("-", 1) for path in sorted(folder.glob("*.json")))
    return [(engine, version) for engine, version in pairs if engine in REAL_DEPENDENCIES]


def refresh(say: Callable[[str], None], folder: Path = CATALOGS) -> int:
    """The exit status of the first release that fails, after all have been tried."""
    failed = 0
    for number, (engine, version) in enumerate(pairs := known(folder), start=1):
        path = folder / f"{engine}-{version}.json"
        before = path.read_bytes()
        command = [sys.executable, str(Path(__file__).parent), "catalog", engine, version, "-o", str(path)]
        status = subprocess.run(command, check=False).returncode
        failed = failed or status
        word = "FAILED" if status else "unchanged" if path.read_bytes() == before else "changed"
        say(f"[{number}/{len(pairs)}] {engine} {version}: {word}")
    return failed
