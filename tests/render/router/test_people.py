"""What router.lua is told: keys.yml and the groups, as tables."""

from __future__ import annotations

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.client_keys import Key
from sparkloom.onnode import key_table
from sparkloom.render.router import Group, Terms, envoy, models
from tests import golden_files

GROUPS = (
    Group(
        "qwen3-8b", "qwen3-8b-rank0.sparkloom.svc.cluster.local", 30000, "/etc/sparkloom-router/own/qwen3-8b",
        model="Qwen/Qwen3-8B", aliases=("small",), at_once=32, waiting=64, health_port=20101, health_path="/ready",
        facts={"max_model_len": 40960},
    ),
    Group("glm", "10.42.0.7", 8000, "/etc/sparkloom-router/own/glm"),
    Group(
        "glm-5.3-air", "glm-5-3-air.sparkloom.svc.cluster.local", 30000, "/etc/sparkloom-router/own/glm-5-3-air",
        health_port=20101, health_path="/ready", label="glm-5-3-air", waker="waker.sparkloom.svc.cluster.local:8091",
    ),
)  # fmt: skip
KEYS = (
    Key(name="alice", hash=f"sha256:{'a' * 64}"),
    Key(name="bob", hash=f"sha256:{'b' * 64}", models=["small"], requests_per_minute=60, tokens_per_minute=200_000,
        expires="2027-01-31"),
    Key(name="carol", hash=f"sha256:{'c' * 64}", models=["gone"]),
)  # fmt: skip


def test_a_key_is_a_line_that_admission_lua_reads() -> None:
    told = dict(line.split(" ", 1) for line in key_table.text(one.entry for one in KEYS).splitlines()[1:])
    assert told["a" * 64] == "name=alice"
    assert told["b" * 64] == "name=bob models=small requests=60 tokens=200000 ends=1801440000"
    none = KEYS[0].model_copy(update={"models": [], "admin": True}).entry
    assert key_table.text([none]).endswith(" name=alice models=, admin=1\n"), "an empty list is no permission"


def test_the_version_changes_with_the_content_alone() -> None:
    version = models.table(GROUPS)["version"]
    assert models.table(list(GROUPS))["version"] == version != models.table(GROUPS[:1])["version"]
    entries = [one.entry for one in KEYS]
    written = key_table.text(entries)
    assert key_table.text(reversed(entries)) == written and key_table.read(written) == entries
    assert key_table.version(key_table.text(entries[:2])) != key_table.version(written)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="'small' would be the name of two models: qwen3-8b and small"):
        models.table([*GROUPS, Group("small", "10.42.0.8", 8000, "/k")])


@pytest.mark.parametrize(
    "file", ["listeners.yaml", "routes.yaml", "clusters.yaml", "secret-glm.yaml", "envoy.yaml", "keys"]
)
def test_golden_router(file: str) -> None:
    golden_files.check("router", file, envoy.files(GROUPS, KEYS, Terms())[file])
