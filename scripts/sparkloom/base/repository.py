"""Where the profiles, inventories and playbooks lie that belong to this package, and where it may write.

In a checkout both are the checkout. An installed package carries a copy of the former (setup.py), which nothing writes
into: what a run leaves behind lies below the folder in which the person works.
"""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
CARRIED = Path(__file__).resolve().parents[1] / "tree"
INSTALLED = CARRIED.is_dir()
REPO = CARRIED if INSTALLED else CHECKOUT  # to read from
WORK = Path.cwd() if INSTALLED else CHECKOUT  # build/ and .build/ are made here


def kept(site: str) -> Path:
    """The folder in which runs leave what later ones, and people, want to read of a site."""
    return WORK / "build" / site


def place(path: str) -> Path:
    """A file of this machine: `~` is the user's home, a relative path starts where we work (the checkout)."""
    named = Path(path).expanduser()
    return named if named.is_absolute() else WORK / named
