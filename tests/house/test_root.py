"""Root is asked for by the plays that need it, never by the inventory, and never on the controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import REPO

PLAYBOOKS = sorted(REPO.glob("playbooks/*.yml"))
TASK_FILES = sorted(
    path for form in ("roles/*/tasks/*.yml", "molecule/*/*.yml", "molecule/*/tasks/*.yml") for path in REPO.glob(form)
)


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, list):
        for entry in found:
            yield from tasks(entry)
    elif isinstance(found, dict):
        yield found
        for key in ("tasks", "block", "rescue", "always"):
            yield from tasks(found.get(key))


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.name)
def test_every_play_on_machines_asks_for_root_itself(path: Path) -> None:
    """A box beside the Sparks, in k3s_servers only, had no root: the inventory gave it to the group `sparks`."""
    for play in load(path):
        assert play.get("become") is True or "hosts" not in play, play["name"]


@pytest.mark.parametrize("path", sorted(REPO.glob("molecule/*/*.yml")), ids=lambda path: str(path.relative_to(REPO)))
def test_every_play_of_a_scenario_on_machines_too(path: Path) -> None:
    for play in (entry for entry in load(path) if isinstance(entry, dict) and "spark" in str(entry.get("hosts"))):
        assert play.get("become") is True, play["name"]


@pytest.mark.parametrize("path", TASK_FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_nothing_is_root_on_the_controller(path: Path) -> None:
    for task in tasks(load(path)):
        if task.get("delegate_to") == "localhost":
            assert task.get("become") is False, task.get("name")


def test_no_inventory_gives_root() -> None:
    """Else a play that forgot to ask would work here and not on somebody's machines."""
    texts = {path: path.read_text() for path in REPO.glob("inventories/*/hosts.yml")}
    assert len(texts) >= 4
    assert [path for path, text in texts.items() if "ansible_become:" in text] == []


def test_the_user_is_every_machine_s_not_only_the_sparks() -> None:
    assert load(REPO / "inventories/gb10/hosts.yml")["all"]["vars"]["ansible_user"]
