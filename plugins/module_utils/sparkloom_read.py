"""Reading a machine: what is absent is a fact too, never a crash."""

from __future__ import annotations

import subprocess
from pathlib import Path


def run(*argv: str, timeout: float = 10) -> str:
    """Standard output of a command, or nothing."""
    return outcome(*argv, timeout=timeout)[0]


def outcome(*argv: str, timeout: float = 10) -> tuple[str, str]:
    """Standard output of a command that ended well, or why there is none."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError:
        return "", f"no {argv[0]}"
    except (OSError, subprocess.SubprocessError) as error:
        return "", f"{argv[0]}: {error}"
    if done.returncode:
        return "", " ".join((done.stderr or done.stdout).split())[:300] or f"{argv[0]} ended with {done.returncode}"
    return done.stdout, ""


def text(path: Path, default: str = "") -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return default


def number(path: Path) -> int:
    value = text(path)
    return int(value) if value.lstrip("-").isdigit() else 0
