"""What a published repository has: a changelog of this version, workflows and issue forms that would work there."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import REPO

WORKFLOWS = sorted(REPO.glob(".github/workflows/*.yml"))
FORMS = sorted(file for file in REPO.glob(".github/ISSUE_TEMPLATE/*.yml") if file.name != "config.yml")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
FIELDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def load(file: Path) -> dict[Any, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def test_the_changelog_is_in_its_form_and_knows_this_version() -> None:
    lines = (REPO / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    released = [re.fullmatch(r"## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", line) for line in versions[1:]]
    assert all(released)
    version = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["version"]
    last = released[0][1] if released and released[0] else ""
    assert last == version if last else any(version in line for line in lines), "released, or the one to come"
    assert {line.removeprefix("### ") for line in lines if line.startswith("### ")} <= KINDS


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_runs_what_is_there_with_pinned_actions_and_few_rights(file: Path) -> None:
    told = load(file)
    assert told["permissions"] == {"contents": "read"}
    steps = [step for job in told["jobs"].values() for step in job["steps"]]
    assert all(job["timeout-minutes"] for job in told["jobs"].values())
    for action in (step["uses"] for step in steps if "uses" in step):
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", action), action
    goals = re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.M)
    for line in (step["run"] for step in steps if "run" in step):
        assert all(goal in goals for goal in re.findall(r"\bmake ([a-z-]+)", line)), line
        for ours in re.findall(r"(?:scripts/|\.ci/)[\w/.]+", line):
            assert (REPO / ours).is_file(), line


@pytest.mark.skipif(not shutil.which("actionlint"), reason="no actionlint on PATH")
def test_its_own_linter_has_nothing_to_say() -> None:
    done = subprocess.run(["actionlint", *map(str, WORKFLOWS)], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_an_issue_form_has_what_its_schema_asks_for(file: Path) -> None:
    told = load(file)
    assert told["name"] and told["description"]
    assert told.keys() <= {"name", "description", "labels", "body", "title", "assignees"}
    asked = [field for field in told["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in asked]
    assert asked and len(set(ids)) == len(ids) and all(re.fullmatch(r"[\w-]+", one) for one in ids)
    for field in told["body"]:
        assert field["type"] in FIELDS and field["attributes"]
        assert field["type"] != "dropdown" or all(isinstance(one, str) for one in field["attributes"]["options"])
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    for command in re.findall(r"`sparkloom ([a-z]+)", file.read_text()):
        commands = (REPO / "scripts/sparkloom/cli/commands.toml").read_text()
        assert f'name = "{command}"' in commands, command
