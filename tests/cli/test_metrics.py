"""Dashboards and rules as files: whole, and refused where they cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.cli.window import piped


def test_dashboards_are_written_one_a_file(tmp_path: Path) -> None:
    done = piped("metrics", "dashboards", "--out", str(tmp_path / "new/folder"), "--json")
    assert done.code == 0
    written = [Path(name) for name in json.loads(done.text)["files"]]
    assert sorted(path.name for path in written) == [
        f"sparkloom-{name}.json" for name in ("fleet", "group", "hosts", "people", "rails")
    ]
    assert all(json.loads(path.read_text())["panels"] for path in written)


def test_rules_name_the_ports_of_the_site(tmp_path: Path) -> None:
    done = piped("metrics", "rules")
    (group,) = yaml.safe_load(done.text)["groups"]
    (link,) = (rule for rule in group["rules"] if rule["alert"] == "SparkloomLinkDown")
    assert done.code == 0 and "enp1s0f0np0" in link["expr"]
    file = tmp_path / "rules.yml"
    assert piped("metrics", "rules", "--out", str(file)).code == 0
    assert yaml.safe_load(file.read_text())["groups"] == [group]


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = piped("metrics", "dashboards", "--out", str(tmp_path / "file/below"))
    assert done.code == 2 and "name a place that you may write" in done.errors and "Traceback" not in done.errors
