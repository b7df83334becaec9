"""Reading a machine: what is absent is a fact too, never a crash."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path


def run(*argv: str, timeout: float = 10) -> str:
    """Standard output of a command, or nothing."""
    return outcome(*argv, timeout=timeout)[0]


def outcome(*argv: str, timeout: float = 10) -> tuple[str, str]:
    """Standard output of a command that ended well, or why there is none."""
    done = completed(*argv, timeout=timeout)
    if done.returncode:
        return "", " ".join((done.stderr or done.stdout).split())[:300] or f"{argv[0]} ended with {done.returncode}"
    return done.stdout, ""


def running(unit: str) -> bool:
    return run("systemctl", "is-active", unit, timeout=30).strip() == "active"


def text(path: Path, default: str = "") -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return default


def number(path: Path) -> int:
    value = text(path)
    return int(value) if value.lstrip("-").isdigit() else 0


def completed(*argv: str, timeout: float, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """How a command ended, also one that could not begin or did not end."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, input=stdin)
    except FileNotFoundError:
        why = f"no {argv[0]}"
    except (OSError, subprocess.SubprocessError) as error:
        why = f"{argv[0]}: {error}"
    return subprocess.CompletedProcess(argv, 127, "", why)


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sockets(entries: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Of PID/fd/FD in /proc what is open there; a socket by the kernel's number for it."""
    for entry in entries:
        with contextlib.suppress(OSError):
            yield entry, str(entry.readlink()).removeprefix("socket:[").removesuffix("]")


def gids(folder: Path) -> list[tuple[int, str]]:
    """The entries in use of an RDMA port, in order. A table has up to 1024, nearly all empty: read with little around.

    It is sparse and differs per node: scan, never assume an index.
    """
    used = []
    for name in os.listdir(folder):  # noqa: PTH208
        try:
            with open(f"{folder}/{name}", "rb", buffering=0) as entry:  # noqa: PTH123
                gid = entry.read(64).strip()
        except OSError:
            continue
        if gid.strip(b"0:"):
            used.append((int(name), gid.decode()))
    return sorted(used)


def mounted(prefixes: list[str]) -> list[str]:
    """Mount points below these, the latest first. The kernel writes a space in a name as \\040."""
    lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    points = [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[1]) for line in lines]
    return [p for p in reversed(points) if any(p.startswith(f"{prefix}/") for prefix in prefixes)]
