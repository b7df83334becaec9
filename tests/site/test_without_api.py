"""Where the cluster's API does not answer: what each Spark says of itself, and what none of them can know."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.site import without_api
from tests import inventories

AWAY = InputError.single("~/.kube/home", "the cluster's API cannot be reached: Connection refused", rule="no-cluster")
SAYS = {
    "spark1": {"told": ["k3s.service loaded failed failed Lightweight Kubernetes", "glm-rank0-0 runs, start 2"]},
    "spark2": {"msg": "ssh: connect to host 127.0.0.12 port 22: Connection refused", "unreachable": True},
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return inventories.own(tmp_path, "site")


def answering(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    monkeypatch.setattr(without_api, "_answers", lambda inventory, args: answers)


def test_each_spark_speaks_for_itself_and_what_none_knows_is_said(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, SAYS)
    shown = without_api.look(AWAY, site)
    assert shown["serving"] is None and list(shown["nodes"]) == ["spark1", "spark2", "spark3", "spark4"]
    text = without_api.text(shown).splitlines()
    assert "Connection refused" in text[0] and text[2:5] == ["spark1", *(f"  {one}" for one in SAYS["spark1"]["told"])]
    assert text[5:7] == ["spark2", "  does not answer on SSH at 127.0.0.12 (Connection refused)"]
    assert (
        text[7].startswith("  ansible_host")
        and text[9] == "  gave no answer in time"
        and text[-1].startswith("not known without the API")
    )


def test_what_no_spark_tells_either_stays_unusable_input(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, {"spark2": SAYS["spark2"]})
    with pytest.raises(InputError, match=r"No Spark tells either: spark1 .*; spark2 does not answer"):
        without_api.look(AWAY, site)
    other = InputError.single("group", "no such group", rule="no-such-group")
    for error, inventory in ((other, site), (AWAY, None)):
        with pytest.raises(InputError) as raised:
            without_api.look(error, inventory)
        assert raised.value is error


def test_who_is_too_late_is_not_waited_for(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in Ansible's place: one host has answered, another never will."""
    slow = tmp_path / "ansible"
    slow.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib, sys, time\n"
        "folder = pathlib.Path(os.environ['ANSIBLE_CALLBACK_TREE_DIR'])\n"
        "(folder / 'spark1').write_text(json.dumps({'told': sys.argv[1:]}))\ntime.sleep(60)\n"
    )
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(without_api, "program", lambda name: str(slow))
    monkeypatch.setattr(without_api, "SECONDS", 2)
    nodes = without_api.look(AWAY, site, pods="glm-rank*-0", lines=5)["nodes"]
    assert nodes["spark2"][0] == "gave no answer in time" and nodes["spark1"][:2] == ["sparks", "-i"]
    asked = {"do": "without_api", "namespace": "sparkloom", "pods": "glm-rank*-0", "lines": 5}
    assert json.loads(nodes["spark1"][-1]) == asked
