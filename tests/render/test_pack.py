"""What is packed for nodes and pods: the same bytes everywhere, complete, and runnable without this repository."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.render import pack
from tests.onnode.rank.ranks import oldest_python
from tests.places import REPO

ONNODE = REPO / "scripts/sparkloom/onnode"
SHARED = {
    "sparkloom.base.errors",
    "sparkloom.base.finding",
    "sparkloom.base.json_text",
    "sparkloom.base.visible",
}  # which import nothing but the standard library and these
# What each says when it is asked for something harmless: (words, exit status, a part of its words).
HARMLESS = {
    "allreduce": ([], 1, "No module named 'torch'"),
    "functions": (["--help"], 0, "usage: sparkloom-functions"),
    "host_metrics": (["--help"], 2, "usage: host-metrics.pyz"),
    "images": (["--help"], 2, "usage: images look|"),
    "memory_guard": (["--help"], 2, "usage: memory-guard.pyz"),
    "page": (["--help"], 0, "usage: page"),
    "patch_image": (["patches.json"], 0, "0 files changed for 0 patches"),
    "rails_table": (["--help"], 0, "usage: sparkloom-rails-table"),
    "rank": (["status"], 2, "is no plan of a group"),
    "tasks": ([], 2, "usage: tasks < JSON"),
    "waker": (["--help"], 0, "usage: waker"),
    "weights": (["--help"], 2, "usage: store start|"),
}


def imports(file: Path) -> Iterator[str]:
    """Whole names, as a parser reads them: `from a import b` is a.b."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports are not followed"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def contents(archive: bytes) -> dict[str, bytes]:
    opened = zipfile.ZipFile(io.BytesIO(archive))
    return {name: opened.read(name) for name in opened.namelist()}


def test_every_program_of_the_room_is_packed() -> None:
    """A module or a package with a `main` is a program, and those that are none have no `main`."""
    mains = {path for path in ONNODE.glob("**/*.py") if "\ndef main(" in path.read_text()}
    named = {path.stem if path.parent == ONNODE else path.parent.name for path in mains}
    assert named == set(pack.PROGRAMS) == set(HARMLESS)


@pytest.mark.parametrize("name", pack.PROGRAMS)
def test_a_program_runs_on_the_system_s_python_without_our_package(name: str, tmp_path: Path) -> None:
    """The oldest that is promised, where this machine has it; nothing of this venv, of site-packages or of $HOME.

    What roles ask of a node needs 3.11, and says so there.
    """
    words, status, told = HARMLESS[name]
    file = pack.program(name).keep(tmp_path)
    python = sys.executable if name == "tasks" else oldest_python()
    command = [python, "-I", "-S", "-W", "error", str(file), *words]
    (tmp_path / "patches.json").write_text("[]")
    environment = {"PATH": os.environ["PATH"], "RANK": "0", "WORLD_SIZE": "2"}
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr
    assert told in ran.stdout + ran.stderr


def test_a_python_that_is_too_old_for_tasks_is_told_at_once(tmp_path: Path) -> None:
    """Red before: preflight took 3.9 for good, and a role ended with an ImportError an hour later."""
    if (python := oldest_python()) == sys.executable:
        pytest.skip("no Python 3.10 here")
    ran = subprocess.run([python, pack.program("tasks").keep(tmp_path)], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stderr.startswith("Python 3.10") and "is too old" in ran.stderr


@pytest.mark.parametrize("name", pack.PROGRAMS)
def test_it_holds_what_it_imports_and_nothing_else(name: str) -> None:
    """Beside the packer's own way, which reads imports as text: all that a parser finds, each in the archive."""
    files = contents(pack.program(name).archive)
    start = files.pop("__main__.py").decode()
    wanted, waiting = set(), [start.split("from ")[1].split()[0]]
    waiting += [f"sparkloom.onnode.tasks.{task}" for task in pack.TASKS if name == "tasks"]
    while waiting:
        module = waiting.pop()
        path = REPO / "scripts" / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if module.startswith("sparkloom") and file.is_file() and file not in wanted:
            wanted.add(file)
            waiting += [parent for name in imports(file) for parent in (name, name.rpartition(".")[0])]
            waiting.append(module.rpartition(".")[0])
    read = {
        file.parent / beside
        for file in wanted
        for beside in re.findall(r'get_data\(__package__, "([^"]+)"', file.read_text())
    }
    assert {REPO / "scripts" / path for path in files} == wanted | read
    assert all(content == (REPO / "scripts" / path).read_bytes() for path, content in files.items())


def test_other_contents_are_another_stamp_and_the_same_are_the_same_bytes(tmp_path: Path) -> None:
    again = subprocess.run(
        [sys.executable, "-c", "import sys; from sparkloom.render import pack; "
         "sys.stdout.buffer.write(pack.program('rank').archive)"],
        env={**os.environ, "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}, capture_output=True, check=True,
    ).stdout  # fmt: skip
    made = pack.program("rank")
    assert again == made.archive
    assert made.keep(tmp_path) == made.keep(tmp_path) == tmp_path / f"rank-{made.stamp}.pyz"
    assert len({pack.program(name).stamp for name in pack.PROGRAMS}) == len(pack.PROGRAMS)
    entries = zipfile.ZipFile(made.keep(tmp_path)).infolist()
    assert {(entry.compress_type, entry.date_time) for entry in entries} == {(zipfile.ZIP_STORED, pack.TIME)}


def test_the_room_imports_the_standard_library_and_four_of_our_modules() -> None:
    ours = {*SHARED, "sparkloom.onnode"}
    files = [*ONNODE.glob("**/*.py"), *(REPO / "scripts" / f"{name.replace('.', '/')}.py" for name in SHARED)]
    for file in files:
        for name in imports(file):
            if file.name == "hub.py" and name.startswith("huggingface_hub"):
                continue  # packed too, for the one node that asks the hub
            known = name.split(".")[0] in sys.stdlib_module_names or any(
                name == module or name.startswith(f"{module}.") for module in ours
            )
            assert known, f"{file}: {name}"
