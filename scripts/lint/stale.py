"""Fail when a generated file no longer matches what makes it; --write makes it anew. GENERATED names them.

A shell's `>` empties the file before its maker reads it, and docs/architecture.md is made from what it says itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]

# File in the repository -> the command, run from the repository's root, that prints what it should hold.
GENERATED: dict[str, list[str]] = {
    "image_recipes/schema.json": ["-m", "sparkloom.cli", "image", "schema"],
    "model_profiles/schema.json": ["-m", "sparkloom.cli", "schema"],
    "docs/reference/rules.md": ["-m", "scripts.docs.rules_page"],
    "docs/reference/messages.md": ["-m", "scripts.docs.messages_page"],
    "docs/use-it-from-your-tools.md": ["-m", "scripts.docs.connect_page"],
    "docs/architecture.md": ["scripts/lint/floor_plan.py", "--document"],
}


def stale(path: str, command: list[str], write: bool = False) -> str | None:
    """Why the file is stale, or None; with `write` it is so no more."""
    made = subprocess.run([sys.executable, *command], cwd=REPO, capture_output=True, text=True)
    if made.returncode:
        return f"{path}: cannot be regenerated: {' '.join(command)} exited {made.returncode}\n{made.stderr.strip()}"
    target = REPO / path
    if target.exists() and target.read_text() == made.stdout:
        return None
    if write:
        target.write_text(made.stdout)
        return None
    return f"{path}: stale; run .venv/bin/python scripts/lint/stale.py --write"


def main() -> int:
    write = "--write" in sys.argv[1:]
    reasons = [reason for path, command in GENERATED.items() if (reason := stale(path, command, write))]
    print(f"{len(GENERATED)} generated files, {len(reasons)} stale")
    for reason in reasons:
        print(reason, file=sys.stderr)
    return bool(reasons)


if __name__ == "__main__":
    sys.exit(main())
