"""The waker's tasks: its objects where groups on demand are set up, nothing where none is, and its end."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.launch.groups import Running
from sparkloom.site import ansible, client, objects
from sparkloom.site.groups import observed
from sparkloom.site.tasks import gateway
from sparkloom.site.tasks import waker as tasks
from tests.inventories import serving
from tests.plugins.loading import context

OSS = {"profile": "openai--gpt-oss-120b", "name": "oss"}
CHAT = {"profile": "radixark--qwen3.8-27b-nvfp4", "name": "chat", "idle_minutes": 15}


class Reached:
    """A cluster with records, and what is left of a waker."""

    def __init__(self) -> None:
        self.records = {"chat-served": {"served.json": json.dumps({"ready_seconds": 61.5})}}

    def config_map(self, name: str) -> dict[str, str] | None:
        return self.records.get(name)

    def secret(self, name: str) -> dict[str, str]:
        return {"key": "sk-own"}

    def api_addresses(self) -> list[tuple[str, int]]:
        return [("10.43.0.1", 443)]

    def has_service(self, name: str) -> bool:
        return name == "waker"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    cluster = case.cluster(serving(tmp_path, "profile: openai--gpt-oss-120b\n"))
    there = SimpleNamespace(serve=[OSS, CHAT], runs=["oss", "chat"], taken=[])
    monkeypatch.setattr(ansible, "cluster", lambda task_vars: cluster)
    monkeypatch.setattr(client, "of", lambda cluster: Reached())
    monkeypatch.setattr(ansible, "listed", lambda task_vars: there.serve and {"serve": there.serve})
    monkeypatch.setattr(
        observed,
        "running",
        lambda cluster: {name: Running(name, "", ("spark1",)) for name in there.runs},
    )

    def left_over(reached: Any, kinds: Any, labels: Any, *, dry: bool) -> list[str]:
        if labels["app.kubernetes.io/name"] != "waker":
            return []
        there.taken.append((len(list(kinds)), dry))
        return ["Deployment waker"]

    monkeypatch.setattr(objects, "left_over", left_over)
    return there


def run(site: SimpleNamespace, dry: bool = False, *, what: str, **args: Any) -> dict[str, Any]:
    does: Any = {"give": tasks.give, "remove": partial(gateway.clear, ingress="")}[what]
    return dict(does(context(dry=dry), **args))


def test_its_objects_tell_of_the_groups_that_are_on_demand(site: SimpleNamespace) -> None:
    told = run(site, what="give", image="python:3")
    assert told["msg"] == "on demand: chat"
    (text,) = (one["data"]["groups.json"] for one in told["objects"] if one["metadata"]["name"] == "waker-groups")
    (group,) = json.loads(text)["groups"]
    assert (group["name"], group["idle_seconds"], group["load_seconds"]) == ("chat", 900.0, 61.5)
    assert run(site, what="remove") == {"changed": False, "drift": [], "msg": "nothing is left over"}
    assert site.taken == []


@pytest.mark.parametrize("serve", [[OSS], None])
def test_there_is_none_where_nobody_is_on_demand(site: SimpleNamespace, serve: Any) -> None:
    site.serve = serve
    assert run(site, what="give", image="")["objects"] == []
    told = run(site, dry=True, what="remove")
    assert told["changed"] and told["drift"][0]["what"] == "Deployment waker" and site.taken == [(8, True)]


def test_there_is_none_for_a_group_that_is_not_set_up(site: SimpleNamespace) -> None:
    site.runs = ["oss"]
    assert run(site, what="give", image="python:3")["objects"] == []


def test_without_an_image_it_is_said_what_to_write(site: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="gateway_waker_image"):
        run(site, what="give", image="")
