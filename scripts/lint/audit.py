"""Known faults of what requirements.lock pins, by pip-audit. audit_waivers.yml says with which we go on, until when.

Without a source of advisories (a mirror of an index has none) nothing is known, good or bad: one line says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[2]
LOCK = REPO / "requirements.lock"
WAIVERS = Path(__file__).with_name("audit_waivers.yml")
PROGRAM = Path(sys.executable).with_name("pip-audit")
NONE = "no advisories are to be had here: nothing is known of the pinned packages, good or bad"
AWAY = ("Connection", "connect", "Timeout", "timed out", "resolve", "SSL")


def audited(program: Path, lock: Path) -> list[dict[str, Any]] | None:
    """Name, version and faults of each package of a lock; None where nobody can tell."""
    command = [program, "--disable-pip", "--require-hashes", "-r", lock, "--format", "json"]
    words = ["--progress-spinner", "off", "--timeout", "5"]
    done = subprocess.run([*command, *words], capture_output=True, text=True)
    try:
        told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        if any(word in done.stderr for word in AWAY):
            return None
        raise SystemExit(f"pip-audit ended with {done.returncode}: {done.stderr[-2000:]}") from None
    return None if all("skip_reason" in one for one in told) else told


def known(program: Path, lock: Path) -> list[dict[str, Any]] | None:
    """The first package alone tells whether somebody answers: all of them would be asked for one after the other."""
    text = lock.read_text(encoding="utf-8").partition("\n")[2]
    lines = text.splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if not line.rstrip().endswith("\\"))
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.lock"
        first.write_text("".join(lines[: end + 1]), encoding="utf-8")
        return audited(program, first) and audited(program, lock)


def judged(told: Sequence[dict[str, Any]], waivers: Sequence[dict[str, Any]], today: date) -> Iterator[str]:
    """What is to be mended: a fault that nobody waived, or no longer, and a waiver of nothing."""
    until = {str(one["id"]): one["until"] for one in waivers}
    found = set()
    for one in told:
        for fault in one.get("vulns", ()):
            names = {fault["id"], *fault.get("aliases", ())}
            found |= names
            mended = ", ".join(fault.get("fix_versions", ())) or "no release"
            if not any(until[name] >= today for name in names & until.keys()):
                yield f"{one['name']} {one['version']}: {fault['id']}, mended in {mended}"
    yield from (f"{name} is waived and found no more: take it out of {WAIVERS.name}" for name in until.keys() - found)


def main() -> int:
    told = known(PROGRAM, LOCK)
    if told is None:
        print(NONE)
        return 0
    waivers = yaml.safe_load(WAIVERS.read_text(encoding="utf-8"))["waivers"]
    wrong = sorted(judged(told, waivers, datetime.now(UTC).date()))
    skipped = sum("skip_reason" in one for one in told)
    print(f"{len(told)} pinned packages, {skipped} of them unknown, {len(wrong)} to mend")
    print("".join(f"{line}\n" for line in wrong), end="")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
