"""The decisions of `playbooks/image.yml`, as its tasks ask for them."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.inputs import image_recipes, lock_file
from sparkloom.render import image_context
from sparkloom.site import image_build
from sparkloom.site.tasks import image_build as tasks
from tests.places import REPO
from tests.plugins.loading import context

SITE = REPO / "inventories/gb10"
RECIPE = "llama.cpp-b8399"
LOADED = image_recipes.load(RECIPE)
A, B = (f"sha256:{letter * 64}" for letter in "ab")
SPARKS = yaml.safe_load((SITE / "hosts.yml").read_text())["all"]["children"]["sparks"]["hosts"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tasks, "kept", lambda site: tmp_path / "build" / site)
    return tmp_path


def asked(what: str, folder: Path, answers: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    loaded = {name: yaml.safe_load((SITE / f"group_vars/all/{name}.yml").read_text()) for name in ("cluster", "fabric")}
    answered = {node: {"found": {"answer": told}} for node, told in (answers or {}).items()}
    task_vars = {
        "cluster": loaded["cluster"]["cluster"],
        "fabric": loaded["fabric"]["fabric"],
        "groups": {"sparks": list(SPARKS)},
        "hostvars": {name: {**values, **answered.get(name, {})} for name, values in SPARKS.items()},
        "ansible_play_hosts_all": list(answers or SPARKS),
        "inventory_dir": str(folder),
    }
    given = {"recipe": RECIPE, **({"answers": "found"} if answers else {}), **options}
    does = getattr(tasks, what)
    known = inspect.signature(does).parameters
    return dict(does(context(task_vars), **{name: value for name, value in given.items() if name in known}))


def told(tag: str) -> dict[str, Any]:
    made_of = image_context.of(LOADED) if tag else ""
    return {"tag": tag, "digests": [tag] if tag else [], "made_of": made_of}


def test_the_plan_names_the_builder_and_the_way(tmp_path: Path) -> None:
    plan = asked("plan", tmp_path)
    assert (plan["builder"], plan["way"]) == ("spark1", "over the rails")
    assert plan["asked"]["image"] == LOADED.recipe.image and plan["file"].endswith("/image.tar")
    assert asked("plan", tmp_path, node="spark4")["builder"] == "spark4"


def test_a_recipe_that_is_not_pinned_is_refused_unless_forced(tmp_path: Path) -> None:
    text = (REPO / f"image_recipes/{RECIPE}.yml").read_text()
    loose = tmp_path / "loose.yml"
    loose.write_text(text.replace(f"  digest: {LOADED.recipe.base.digest}\n", ""))
    refused = asked("plan", tmp_path, recipe=str(loose))
    assert refused["failed"] and "has no digest" in refused["msg"]
    assert "failed" not in asked("plan", tmp_path, recipe=str(loose), force=True)


def test_what_is_locked_decides_and_what_was_built_is_locked(kept: Path) -> None:
    nodes = {node: told(A) for node in ("spark1", "spark2")}
    done = asked("keep", kept, nodes)
    assert done["changed"] and done["digest"] == A
    file = lock_file.place(kept)
    (entry,) = lock_file.read(file, lock_file.Image).values()
    assert (entry.of, entry.digest, entry.node) == (LOADED.recipe.image, A, "spark1")
    record = json.loads((kept / "build/gb10/images" / f"{RECIPE}.json").read_text())
    assert record["digest"] == A and record["recipe_sha256"] == image_context.of(LOADED)
    assert not asked("keep", kept, nodes)["changed"], "a second run changes nothing"
    two = {"spark1": told(B), "spark2": told(A)}
    decided = asked("decide", kept, two)
    assert decided["digest"] == A and list(decided["pulls"]) == ["spark1"]
    assert asked("keep", kept, two)["failed"]


def test_a_node_without_room_is_named(tmp_path: Path) -> None:
    room = {"tool": "docker", "free_gb": {}, "memory_gib": 9.0, "serving": [], "refusals": ["9 GiB are available"]}
    refused = asked("judge", tmp_path, {"spark1": room})
    assert refused["failed"] and refused["msg"] == "spark1: 9 GiB are available"
    beside = {**room, "refusals": [], "serving": ["glm-rank0-0"]}
    assert asked("judge", tmp_path, {"spark1": beside})["msg"] == (
        "spark1 builds, by docker, beside glm-rank0-0, which serves"
    )


def test_one_node_hands_nothing_on(tmp_path: Path) -> None:
    row = {"id": image_build.model(LOADED), "commit": "c" * 40, "manifest": "m", "ok": True, "problems": []}
    assert asked("chain", tmp_path, {"spark1": [row]}) == {"specs": {}, "head": ""}
    lacking = {**row, "ok": False, "manifest": "", "commit": None}
    specs = asked("chain", tmp_path, {"spark1": [row], "spark2": [lacking]})
    assert specs["head"] == "spark1" and list(specs["specs"]) == ["spark1", "spark2"]
