"""The programs that roles put on a node: packed on the controller, started by the units from where they were put."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.onnode.host import backup
from sparkloom.render import pack
from sparkloom.site import executor
from tests.places import REPO
from tests.plugins.loading import module

PLACE = "/usr/local/lib/sparkloom"  # which a teardown of the nodes takes away whole


def programs() -> list[tuple[str, str, str]]:
    """(role, program, path on a node)."""
    found = []
    for path in REPO.glob("roles/*/vars/main.yml"):
        variables = yaml.safe_load(path.read_text())
        entries = [entry for value in variables.values() if isinstance(value, list) for entry in value]
        for entry in (entry for entry in entries if isinstance(entry, dict) and "program" in entry):
            name = re.fullmatch(r"{{ (\w+) }}", entry["path"])
            assert name
            found.append((path.parts[-3], entry["program"], variables[name[1]]))
    return found


def test_the_roles_put_four_programs_on_a_node() -> None:
    assert sorted(programs()) == [
        ("metrics", "host_metrics", f"{PLACE}/host-metrics.pyz"),
        ("node_base", "memory_guard", f"{PLACE}/memory-guard.pyz"),
        ("roce_fabric", "functions", f"{PLACE}/functions.pyz"),
        ("roce_fabric", "rails_table", f"{PLACE}/rails-table.pyz"),
    ]
    assert PLACE in yaml.safe_load((REPO / "roles/teardown/vars/main.yml").read_text())["__teardown_programs"]


@pytest.mark.parametrize("role", ["metrics", "node_base", "roce_fabric"])
def test_a_unit_starts_what_its_role_put_there(role: str) -> None:
    started = {
        path
        for unit in REPO.glob(f"roles/{role}/files/*.service")
        for path in re.findall(rf"^ExecStart=.*? ({PLACE}\S+)", unit.read_text(), re.M)
    }
    assert started == {path for owner, _, path in programs() if owner == role}


def test_what_the_controller_packs_is_what_the_node_gets_and_gives_back(tmp_path: Path, monkeypatch: Any) -> None:
    tool = module("files")
    monkeypatch.setattr(backup, "FOLDER", tmp_path / "origin")
    target = tmp_path / "lib/functions.pyz"
    entry = executor.whole({"path": str(target), "program": "functions", "mode": "0644"}, str)
    assert base64.b64decode(entry["content"]) == pack.program("functions").archive
    run = type("Run", (), {"check_mode": False})
    changed: list[str] = []
    diffs: list[dict[str, str]] = []
    tool.present(run, [entry], changed, diffs, keep=True)
    assert target.read_bytes() == pack.program("functions").archive and changed == [str(target)]
    assert (diffs[0]["before"], diffs[0]["after"][:18]) == ("", "a program, sha256 ")
    tool.present(run, [entry], changed, diffs, keep=True)
    assert len(changed) == 1
    backup.restore_file(target)
    assert not target.parent.exists()
