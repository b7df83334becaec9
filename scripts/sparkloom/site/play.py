"""A playbook of ours as a program: its command and its environment, from a checkout or from an installed package."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from sparkloom.base.repository import INSTALLED, REPO, WORK

PR_SET_PDEATHSIG = 1


def program(name: str) -> str:
    """One of ours or of Ansible's, beside the interpreter that runs us."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def command(playbook: Path, inventory: Path, extra: Iterable[str]) -> list[str]:
    return [program("ansible-playbook"), "-i", str(inventory.resolve()), *extra, str(playbook)]


def environment(**more: str) -> dict[str, str]:
    """Ansible with our configuration, whatever folder it runs in, and nothing written beside an installed package."""
    ours = {"ANSIBLE_CONFIG": str(REPO / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
    if INSTALLED:
        ours |= {"ANSIBLE_LOCAL_TEMP": str(WORK / ".build/ansible")}
    return {**os.environ, **ours, **more}


def end_with_parent() -> None:
    """A worker of a run that is killed would wait on a pipe for words that nobody sends any more."""
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):  # Linux
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
