"""Kernel settings as they are in the running kernel."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc/sys")


def proc(key: str) -> Path:
    """net.ipv4.conf.eth0/1.mtu style: a slash in a key stands for a dot in a name."""
    return PROC / "/".join(part.replace("/", ".") for part in key.split("."))


def live(key: str) -> str | None:
    try:
        return " ".join(proc(key).read_text().split())
    except OSError:
        return None


def apply(key: str, value: str) -> str | None:
    """Why the kernel refused, or None."""
    try:
        proc(key).write_text(value + "\n")
    except OSError as error:
        return error.strerror or str(error)
    return None if live(key) == value else f"reads {live(key)} after writing {value}"
