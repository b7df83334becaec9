"""The collection sparkloom.sparks, as somebody installs the file: its plugins are documented, its playbooks run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.places import REPO

NAME = "sparkloom.sparks"
ACTIONS = sorted(file.stem for file in (REPO / "plugins/action").glob("*.py"))
CALLBACKS = sorted(file.stem for file in (REPO / "plugins/callback").glob("*.py"))
ROLES = sorted(path.name for path in (REPO / "roles").iterdir() if path.is_dir())


def ask(folder: Path, program: str, *words: str, apart: bool = False) -> subprocess.CompletedProcess[str]:
    """With nothing of this checkout's configuration; `apart`: in a network that leads nowhere."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    needed = f"{folder}:{REPO / '.venv/collections'}"  # what an index would bring with it
    env |= {"ANSIBLE_COLLECTIONS_PATH": needed, "ANSIBLE_NOCOLOR": "1", "HOME": str(folder)}
    command = [*(["unshare", "--net"] if apart else []), str(Path(sys.executable).with_name(program)), *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of collections with ours in it."""
    made, folder = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("collections")
    build = [sys.executable, str(REPO / "scripts/collection/build.py"), str(made)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = done.stdout.strip()
    words = ("collection", "install", file, "-p", str(folder), "--offline", "--no-deps")
    got = ask(folder, "ansible-galaxy", *words)
    assert got.returncode == 0 and "installed successfully" in got.stdout, got.stdout + got.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "names"), [("module", ACTIONS), ("callback", CALLBACKS), ("role", ROLES)])
def test_ansible_doc_tells_of_each_plugin_and_role(installed: Path, kind: str, names: list[str]) -> None:
    words = ("--json", "-t", kind, *(f"{NAME}.{name}" for name in names))
    done = ask(installed, "ansible-doc", *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(told) == [f"{NAME}.{name}" for name in names] and len(ACTIONS) + len(CALLBACKS) >= 5
    for name, one in told.items():
        short = one["entry_points"]["main"] if kind == "role" else one["doc"]
        assert short["short_description"], name


@pytest.mark.slow
def test_a_module_s_page_lists_all_that_a_task_may_ask_for(installed: Path) -> None:
    done = ask(installed, "ansible-doc", "--json", *(f"{NAME}.{name}" for name in ACTIONS))
    told = json.loads(done.stdout)
    listed = {note.split(":")[0] for one in told.values() for note in one["doc"]["notes"]}
    named = set()
    for file in REPO.glob("roles/*/tasks/*.yml"):
        named |= asked_for(yaml.safe_load(file.read_text()))
    assert named and named <= listed
    (sysctl,) = (note for note in told[f"{NAME}.sparkloom_node"]["doc"]["notes"] if note.startswith("sysctl:"))
    assert "required" in sysctl


def asked_for(found: object) -> set[str]:
    """Every `do` of our own tasks."""
    if isinstance(found, list):
        return {word for one in found for word in asked_for(one)}
    if not isinstance(found, dict):
        return set()
    own = {str(found[name]["do"]) for name in ACTIONS if "do" in (found.get(name) or {})}
    return {word for word in own if "{{" not in word} | asked_for(list(found.values()))


@pytest.mark.slow
def test_a_playbook_of_it_finds_its_roles_and_plugins_and_gathers_nothing(installed: Path) -> None:
    """Refused at the example's mark by our action plugin; without gather_facts: false SSH came before that."""
    if os.geteuid() or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("needs root and a network namespace")
    words = ("-i", str(REPO / "inventories/gb10"), f"{NAME}.site", "-e", "profile=openai--gpt-oss-120b")
    done = ask(installed, "ansible-playbook", *words, apart=True)
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "example: true" in said and f"{NAME}.identity" in said, said
    assert "Gathering Facts" not in said and "UNREACHABLE" not in said
