"""--tags, --skip-tags and --limit choose what people expect, through the whole of site.yml. Nothing is connected to."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.places import REPO

PARTS = {
    "preflight": {"preflight"}, "nodes": {"node_base"}, "fabric": {"roce_fabric", "fabric_check"},
    "network": {"multus"}, "models": {"model_store"}, "serve": {"model_serving"},
}  # fmt: skip


def ask(*words: str) -> str:
    env = {**os.environ, "PATH": f"{REPO}/.venv/bin:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventories/gb10", "site.yml", *words],
        cwd=REPO, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def roles(listing: str) -> set[str]:
    """Whose tasks would run. Each role's variables are judged in any case: Ansible tags that with `always`."""
    return set(re.findall(r"^ +(\w+) : (?!Validating arguments)", listing, re.M))


def test_the_list_of_tasks_is_a_table_of_contents() -> None:
    listing = ask("--list-tasks")
    tags = re.findall(r"^ +play #\d+ \(sparks(?::k3s_servers)?\): .+?\tTAGS: \[(\w+)", listing, re.M)
    assert [tag for tag in tags if tag in PARTS] == list(PARTS)
    assert roles(listing) >= set().union(*PARTS.values())
    for name in re.findall(r"^ +\w+ : (.+?)\tTAGS", listing, re.M):
        assert name[0].isupper() and "{{" not in name, name


@pytest.mark.parametrize("part", ["fabric", "serve"])
def test_a_tag_runs_its_part_and_nothing_else(part: str) -> None:
    assert roles(ask("--list-tasks", "--tags", part)) == PARTS[part] | {"identity", "operation"}


def test_a_skipped_tag_leaves_the_rest() -> None:
    found = roles(ask("--list-tasks", "--skip-tags", "serve,models"))
    assert found >= {"preflight", "node_base", "roce_fabric", "multus"}
    assert not found & {"model_serving", "model_store"}


def test_a_limit_reaches_that_node_only() -> None:
    listing = ask("--list-hosts", "--limit", "spark2")
    assert "spark2" in listing and not re.search(r"spark[134]\b", listing)
