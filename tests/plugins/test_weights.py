"""Who hands weights to whom, of a run that --limit narrows: the task as a playbook asks for it."""

from __future__ import annotations

from typing import Any

import yaml

from sparkloom.site.tasks import weights
from tests.places import REPO
from tests.plugins.loading import context

SITE = REPO / "inventories/gb10"
SETTINGS = {"endpoint": "", "plain_http": [], "folder": "/mnt", "update": False, "port": 20999, "connections": 4}


def planned(asked: list[str], hostvars: dict[str, dict[str, Any]]) -> dict[str, Any]:
    loaded = {name: yaml.safe_load((SITE / f"group_vars/all/{name}.yml").read_text()) for name in ("cluster", "fabric")}
    sparks = yaml.safe_load((SITE / "hosts.yml").read_text())["all"]["children"]["sparks"]["hosts"]
    task_vars = {
        "cluster": loaded["cluster"]["cluster"],
        "fabric": loaded["fabric"]["fabric"],
        "groups": {"sparks": list(sparks)},
        "hostvars": {name: {**values, **hostvars.get(name, {})} for name, values in sparks.items()},
        "ansible_play_hosts_all": asked,
    }
    return weights.chain(context(task_vars), loaded["cluster"]["profile"], "found", SETTINGS)  # type: ignore[arg-type]


def lacking(model: str) -> dict[str, Any]:
    row = {
        "id": model,
        "whole": False,
        "commit": "",
        "manifest": "",
        "bytes": 0,
        "problems": ["nothing there"],
        "ok": False,
    }
    return {"found": {"answer": [row]}}


def test_limit_to_one_node_plans_that_node_alone() -> None:
    """`playbooks/models.yml --limit spark2` ended in KeyError: 'spark1'."""
    told = planned(["spark2"], {"spark2": lacking("nvidia/m")})
    assert list(told["specs"]) == ["spark2"] and told["specs"]["spark2"]["source"]["kind"] == "folder"
    assert not told["specs"]["spark2"]["downstream"] and "spark1" not in told["msg"]
