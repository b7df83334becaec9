"""The shape of the Ansible side: site.yml is a table of contents, and no task hides what went wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from sparkloom.site import ansible
from tests.places import REPO

PLAYBOOKS = sorted((REPO / "playbooks").glob("*.yml"))
TASKS = sorted([*REPO.glob("roles/*/tasks/*.yml"), *REPO.glob("roles/*/handlers/*.yml")])
INVENTORIES = sorted(path.parent.name for path in REPO.glob("inventories/*/hosts.yml"))


def test_site_imports_existing_playbooks_tagged_by_their_own_name() -> None:
    for entry in yaml.safe_load((REPO / "site.yml").read_text()):
        assert set(entry) - {"vars"} == {"name", "import_playbook", "tags"}
        playbook = REPO / entry["import_playbook"]
        assert playbook.exists()
        assert entry["tags"] == [playbook.stem]


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.name)
def test_a_playbook_runs_alone_under_its_own_tag(playbook: Path) -> None:
    for play in yaml.safe_load(playbook.read_text()):
        assert play["tags"] == [playbook.stem]
        assert "tasks" not in play, "work belongs to a role"


@pytest.mark.parametrize("path", TASKS, ids=lambda path: str(path.relative_to(REPO)))
def test_task_files_are_short_and_hide_nothing(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 60
    assert "ignore_errors" not in text
    # Product code does not know that it is under test.
    assert not re.search(r"molecule|testbed|inventories/kind|sparkloom-worker", text)


def test_inventories_have_the_same_files_and_keys() -> None:
    assert {"gb10", "kind"} <= set(INVENTORIES)
    for name in ("cluster.yml", "fabric.yml", "versions.yml"):
        read = [yaml.safe_load((REPO / f"inventories/{i}/group_vars/all/{name}").read_text()) for i in INVENTORIES]
        assert all(list(data) == list(read[0]) for data in read), name


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_what_the_package_reads_holds_no_template(inventory: str) -> None:
    folder = REPO / f"inventories/{inventory}"
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())["all"]["children"]["sparks"]["hosts"]
    read = [{key: host.get(key) for key in ansible.OURS} for host in hosts.values()]
    read += [yaml.safe_load((folder / f"group_vars/all/{name}.yml").read_text()) for name in ("cluster", "fabric")]
    assert "{{" not in json.dumps(read)


def test_product_files_never_name_the_test_bed() -> None:
    product = ["scripts/sparkloom", "roles", "playbooks", "plugins", "model_profiles"]
    for path in (p for folder in product for p in (REPO / folder).rglob("*") if p.suffix in (".py", ".yml", ".j2")):
        assert "testbed" not in path.read_text(), path


def test_no_object_is_half_built() -> None:
    """What has no facts is a type without them, so that mypy names whoever asks for one."""
    files = (REPO / "scripts/sparkloom").rglob("*.py")
    assert [str(file) for file in files if "model_construct" in file.read_text()] == []


def test_tasks_read_switches_as_people_write_them() -> None:
    """`-e x=false` arrives as text, which Python takes for true: the type of a parameter reads it, no task by hand.

    tests/plugins/test_arguments.py holds that every switch of a role is one of its task too.
    """
    for path in (REPO / "scripts/sparkloom/site/tasks").glob("*.py"):
        assert not re.search(r"\bbool\(args|\bargs\.get\(", path.read_text()), path.name


def test_a_default_of_the_site_stands_in_the_package_alone() -> None:
    """Roles ask `site.read` for what a cluster.yml may leave out."""
    for path in [*PLAYBOOKS, *(p for p in REPO.glob("roles/*/*/*.yml") if p.parent.name != "meta")]:
        assert not re.search(r"\b(cluster|fabric)\b(\.\w+)*[ )]*\|\s*default\(", path.read_text()), path


def test_there_is_one_way_in_which_roles_run_our_code() -> None:
    """One executor: a second action plugin, a module of Ansible's or its library would be another."""
    files = {str(path.relative_to(REPO / "plugins")) for path in (REPO / "plugins").rglob("*.py")}
    assert {name for name in files if not name.startswith("callback/")} == {
        "action/sparkloom.py",
        "action/sparkloom_node.py",
    }
    callers = [
        path for path in (REPO / "scripts/sparkloom").rglob("*.py") if "_low_level_execute_command" in path.read_text()
    ]
    assert [path.name for path in callers] == ["ansible.py"]
