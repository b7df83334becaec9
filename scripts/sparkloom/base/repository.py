"""Where this checkout lies: the package runs from it, beside its profiles, inventories and playbooks."""

from __future__ import annotations

from pathlib import Path

REPO = Path(__file__).resolve().parents[3]


def place(path: str) -> Path:
    """A file of this machine: `~` is the user's home, a relative path starts at the repository."""
    named = Path(path).expanduser()
    return named if named.is_absolute() else REPO / named
