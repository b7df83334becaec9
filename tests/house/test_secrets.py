"""A canary for the API key: it is in no result of a plugin, no rendered object, no environment, no line of a rank."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.onnode.rank import answers
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render import keys
from sparkloom.site import ansible, client
from tests.plugins.loading import action
from tests.render.manifests import case

CANARY = "sk-canary-0123456789abcdef"


class Cluster:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, str]] = {}

    def secret(self, name: str) -> dict[str, str] | None:
        return self.kept.get(name)

    def put_secret(self, name: str, data: dict[str, str], *, dry: bool = False, **_: Any) -> bool:
        changed = self.kept.get(name) != data
        self.kept[name] = data
        return changed


def told(tmp_path: Path) -> Order:
    member = {"rank": 0, "node": "spark1", "address": "127.0.0.1"}
    return Order.of({
        "profile": "p", "engine": "sglang", "release": "0.5.12", "image": "i", "port": 30000, "members": [member],
        "run": str(tmp_path / "run"), "words": str(tmp_path / "words"),
    })  # fmt: skip


def test_what_the_engine_prints_of_its_key_is_blanked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.write(tmp_path / "key", CANARY)
    monkeypatch.setenv(answers.KEY_FILE, str(tmp_path / "key"))
    log = StatusLog(told(tmp_path), 0)
    log.engine(f"server_args=ServerArgs(model_path='m', api_key='{CANARY}')")
    log.cause("failed", f"refused {CANARY}")
    shown = capsys.readouterr().out + (tmp_path / "words").read_text() + log.file.read_text()
    assert CANARY not in shown and "api_key='***'" in shown


def test_the_key_is_in_no_rendered_object_and_no_environment(tmp_path: Path) -> None:
    built = json.dumps(case.build())
    assert keys.SECRET in built and "secretKeyRef" not in built
    names = {variable["name"] for container in case.engines(case.build()) for variable in container["env"]}
    assert not {name for name in names if "API_KEY" in name}


def test_the_plugin_gives_it_to_the_cluster_and_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cluster = tmp_path / "api-key", Cluster()
    keys.write(path, CANARY)
    monkeypatch.setattr(client, "of", lambda _: cluster)
    monkeypatch.setattr(ansible, "cluster", lambda _: None)
    module = action("sparkloom_key")
    arguments = {"file": str(path)}
    found = run(module, arguments)
    assert found["changed"] and cluster.kept[keys.SECRET][keys.BARE_FILE] == CANARY
    assert CANARY not in json.dumps(found, default=str)
    assert not run(module, arguments)["changed"]


def run(module: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The plugin's own work, without a play around it."""
    plugin = module.ActionModule.__new__(module.ActionModule)
    plugin._task = SimpleNamespace(args=arguments, check_mode=False, async_val=0, diff=False)
    return dict(plugin.work(arguments, {}))
