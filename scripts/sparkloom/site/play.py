"""A playbook of ours as a program: its command and its environment, from a checkout or from an installed package."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from sparkloom.base.errors import InputError
from sparkloom.base.repository import INSTALLED, REPO, WORK

PR_SET_PDEATHSIG = 1
COLLECTIONS = Path("~/.local/share/sparkloom/collections").expanduser()  # of an installed package


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
        ours |= {"ANSIBLE_LOCAL_TEMP": str(WORK / ".build/ansible"), "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    return {**os.environ, **ours, **more}


def end_with_parent() -> None:
    """A worker of a run that is killed would wait on a pipe for words that nobody sends any more."""
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):  # Linux
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def require_collections() -> None:
    """An installed package fetches the collections that it was made with, once; `make setup` does it for a checkout."""
    if not INSTALLED or (COLLECTIONS / "ansible_collections/kubernetes/core").is_dir():
        return
    fetch = [program("ansible-galaxy"), "collection", "install", "-r", str(REPO / "requirements.yml")]
    done = subprocess.run([*fetch, "-p", str(COLLECTIONS)], capture_output=True, text=True, env=environment())
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-300:]
        message = f"the collections could not be fetched: {words}; requirements.yml lists them"
        raise InputError.single(str(COLLECTIONS), message, rule="collections")
