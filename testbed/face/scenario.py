"""One molecule scenario, with this checkout's programs before all others on PATH: molecule asks for them by name."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from testbed.base import names
from testbed.base.shell import RackError

ACTIONS = ("test", "converge", "idempotence", "verify", "side-effect", "cleanup", "create", "destroy", "list")
DESCRIPTION = """Runs a molecule scenario (molecule/README.md lists them) or one step of it. `test` leaves the shared
rack standing and takes down machines that the scenario has of its own."""


def known() -> list[str]:
    return sorted(path.parent.name for path in names.REPO.glob("molecule/*/molecule.yml"))


def command(scenario: str, action: str, words: list[str]) -> list[str]:
    own = (names.REPO / "molecule" / scenario / "destroy.yml").exists()
    kept = [f"--destroy={'always' if own else 'never'}"] if action == "test" else []
    return [str(programs() / "molecule"), action, *kept, "-s", scenario, *words]


def programs() -> Path:
    """Where the interpreter that runs this keeps its programs."""
    return Path(sys.executable).parent


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{programs()}{os.pathsep}{os.environ.get('PATH', '')}"}


def main() -> int:
    parser = argparse.ArgumentParser("python -m testbed scenario", description=DESCRIPTION)
    parser.add_argument("name", help="the scenario")
    parser.add_argument("action", nargs="?", default="test", choices=ACTIONS, help="(default: test)")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="more for molecule, as -- -vvv for Ansible")
    args = parser.parse_args()
    if args.name not in known():
        raise RackError(f"no scenario '{args.name}'; there are {', '.join(known())}")
    if not (programs() / "molecule").exists():
        raise RackError(f"no molecule beside {sys.executable}; make setup installs it, .venv/bin/python runs this")
    return subprocess.run(command(args.name, args.action, args.words), cwd=names.REPO, env=environment()).returncode
