"""No secret is in a result of a plugin, a rendered object, an environment or a line of a rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case as product
from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.onnode.rank import answers
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render import keys
from sparkloom.render.manifests import pod_secrets, supervision
from sparkloom.site.groups import secrets
from sparkloom.site.groups.group import RenderedGroup
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


def told(tmp_path: Path) -> GroupPlan:
    member = {"rank": 0, "node": "spark1", "address": "127.0.0.1"}
    return GroupPlan.of({
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
    assert ONLY_KEY in built and "secretKeyRef" not in built
    names = {variable["name"] for container in case.engines(case.build()) for variable in container["env"]}
    assert not {name for name in names if "API_KEY" in name}


def made(cluster: Cluster, name: str) -> Any:
    group = RenderedGroup(product.render(name, force=True), "refuse")
    return group, list(secrets.of_group(cluster, group, dry=False))  # type: ignore[arg-type]


def test_the_engine_s_own_key_is_made_once_and_told_to_nobody() -> None:
    """A new key of the clients leaves it alone: nothing that runs has to start again."""
    cluster = Cluster()
    _, (engine, *_rest) = made(cluster, case.ULTRA)
    key = cluster.kept[ONLY_KEY][keys.BARE_FILE]
    assert engine.name == ONLY_KEY and engine.made and key not in repr(engine)
    assert not any(one.made for one in made(cluster, case.ULTRA)[1])
    assert cluster.kept[ONLY_KEY][keys.BARE_FILE] == key


def test_the_group_s_secret_is_made_once_and_told_to_nobody() -> None:
    """A second run changes nothing; one that a hand has cut short is made anew."""
    cluster = Cluster()
    _, (_, secret) = made(cluster, case.ULTRA)
    name = secret.name
    text = cluster.kept[name][keys.GROUP_FILE]
    assert secret.made and secret.drift[0]["found"] == "not there" and len(text) == 64 and text not in repr(secret)
    cluster.kept[name] = {keys.GROUP_FILE: text[:20]}
    (_, again) = made(cluster, case.ULTRA)[1]
    assert again.made and len(cluster.kept[name][keys.GROUP_FILE]) == 64


def test_every_rank_of_several_gets_the_group_s_secret_as_one_file() -> None:
    """Never in an environment or an argument, and nothing for a rank that is alone."""
    for name, several in ((case.ULTRA, True), (case.RPC, True), (case.SOLO, False), (case.TRTLLM, False)):
        launch, built = case.launch(name), case.build(name)
        secret, path = pod_secrets.group_secret(launch), pod_secrets.group_file(launch)
        assert bool(secret) == bool(path) == several and supervision.plan(launch, "refuse")["secret"] == path
        for pod in case.pods(built):
            volumes = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "group"]
            assert volumes == ([{"name": "group", "secret": {"secretName": secret, "defaultMode": 0o400}}] * several)
            (container,) = pod["spec"]["containers"]
            mounts = [mount for mount in container["volumeMounts"] if mount["name"] == "group"]
            assert [mount["readOnly"] for mount in mounts] == [True] * several
            said = json.dumps([container["env"], container["command"], container["args"]])
            assert not several or (secret not in said and path not in said)
