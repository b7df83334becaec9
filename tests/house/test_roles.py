"""A role's argument specification is its interface: it says exactly what defaults/ says, and plays set nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.places import REPO

ROLES = sorted(path.parent.parent.name for path in REPO.glob("roles/*/tasks/main.yml"))


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text()) or {}


def spec(role: str) -> dict:
    return load(REPO / f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]


def test_there_are_roles() -> None:
    assert {"preflight", "node_base", "roce_fabric"} <= set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_specification_equals_defaults(role: str) -> None:
    options = spec(role)
    assert {name: option["default"] for name, option in options.items() if not option.get("required")} == load(
        REPO / f"roles/{role}/defaults/main.yml"
    )


@pytest.mark.parametrize("role", ROLES)
def test_names_carry_the_role_and_every_option_says_what_it_is(role: str) -> None:
    for name, option in spec(role).items():
        assert name.startswith(f"{role}_"), name
        assert len(option["description"]) > 10, name


@pytest.mark.parametrize("role", ROLES)
def test_every_option_is_used_and_every_used_variable_is_an_option(role: str) -> None:
    texts = [p.read_text() for p in (REPO / f"roles/{role}").rglob("*") if p.is_file() and p.parent.name != "meta"]
    used = {name for text in texts for name in re.findall(rf"(?<![\w.]){role}_\w+", re.sub(r"\bdo: [\w.]+", "", text))}
    assert used == set(spec(role))
    for name, option in spec(role).items():
        declared = 0 if option.get("required") else 1
        assert sum(text.count(name) for text in texts) > declared, f"{name} is only declared"


@pytest.mark.parametrize("role", ROLES)
def test_registers_and_loop_variables_are_marked_internal(role: str) -> None:
    for path in (REPO / f"roles/{role}/tasks").glob("*.yml"):
        for name in re.findall(r"^\s*(?:register|loop_var): (\S+)", path.read_text(), re.M):
            assert name.startswith(f"__{role}_"), f"{path.name}: {name}"


@pytest.mark.parametrize("role", ROLES)
def test_no_role_names_what_is_internal_to_another(role: str) -> None:
    """What one role wants of another stands in its defaults, or is a task file of it that can be included."""
    for path in (p for p in (REPO / f"roles/{role}").rglob("*") if p.suffix in (".yml", ".j2")):
        for name in re.findall(r"(?<!\w)__[a-z]\w*(?<!__)(?!\w)", path.read_text()):
            assert name.startswith(f"__{role}_"), f"{path.relative_to(REPO)}: {name}"


def test_no_playbook_names_what_is_internal_to_a_role() -> None:
    for path in [REPO / "site.yml", *(REPO / "playbooks").glob("*.yml")]:
        assert not re.search(r"(?<!\w)__[a-z]", path.read_text()), path.name
