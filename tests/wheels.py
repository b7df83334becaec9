"""The wheel as it is handed out, and a person's machine that has nothing else of ours."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.places import REPO


def built(folder: Path) -> Path:
    """The wheel in that folder; whoever comes first builds it."""
    with (folder / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (there := list((folder / "wheel").glob("sparkloom-*.whl"))):
            _build(folder / "source", folder / "wheel")
            there = list((folder / "wheel").glob("sparkloom-*.whl"))
    return there[0]


def _build(source: Path, out: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=REPO, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if not name.startswith(("tests/", "testbed/", "molecule/")) and (REPO / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(out), "."]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def installed(wheel: Path, folder: Path) -> Path:
    """The programs of a virtual environment with that wheel; what it depends on is the checkout's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (theirs,) = (REPO / ".venv").glob("lib/python3*/site-packages")
    (packages / "theirs.pth").write_text(f"{theirs}\n")
    uv = [str(REPO / ".venv/bin/uv"), "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*uv, "--python", str(folder / "bin/python"), str(wheel)], check=True, capture_output=True)
    for name in ("ansible-playbook", "ansible", "ansible-galaxy"):  # these name their interpreter
        text = (REPO / ".venv/bin" / name).read_text()
        program = folder / "bin" / name
        program.write_text(text.replace(str(REPO / ".venv"), str(folder)))
        program.chmod(0o755)
    return folder / "bin"
