"""Whether an image of ours is built, where, who hands it to whom, and that no two nodes have two builds."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import image_recipes, inventory
from sparkloom.inputs.image_recipes import HOST
from sparkloom.inputs.lock_file import Image
from sparkloom.launch.downloads import Settings
from sparkloom.render import image_context
from sparkloom.site import image_build, images

SPARKS = inventory.load()
LOADED = image_recipes.load("llama.cpp-b8399")
IDENTITY = image_context.of(LOADED)
A, B = (f"sha256:{letter * 64}" for letter in "ab")
NODES = ("spark1", "spark2", "spark3", "spark4")


def told(tag: str = "", made_of: str = IDENTITY) -> dict[str, Any]:
    return {"tag": tag, "digests": [tag] if tag else [], "made_of": made_of if tag else ""}


def answers(**tags: str) -> dict[str, dict[str, Any]]:
    return {node: told(tag) for node, tag in tags.items()}


def test_an_image_that_no_node_has_is_built_and_one_that_all_have_is_not() -> None:
    assert image_build.decide(LOADED, answers(spark1="", spark2=""), "", again=False).build
    done = image_build.decide(LOADED, answers(spark1=A, spark2=A), "", again=False)
    assert (done.build, done.digest, done.pulls) == (False, A, {}) and "nothing to build" in done.note
    assert image_build.decide(LOADED, answers(spark1=A, spark2=A), "", again=True).build


def test_a_node_that_came_later_has_the_build_of_the_others() -> None:
    done = image_build.decide(LOADED, answers(spark1="", spark2=A), "", again=False)
    assert not done.build and done.pulls == {"spark1": f"{HOST}/llama.cpp@{A}"}
    assert "from there by K3s' registry" in done.note and "management network" in done.note


def test_of_two_builds_the_locked_one_holds() -> None:
    two = answers(spark1=A, spark2=B)
    assert image_build.decide(LOADED, two, B, again=False).pulls == {"spark1": f"{HOST}/llama.cpp@{B}"}
    assert image_build.decide(LOADED, two, "", again=False).pulls == {"spark2": f"{HOST}/llama.cpp@{A}"}


def test_an_image_of_an_earlier_recipe_is_built_anew() -> None:
    done = image_build.decide(LOADED, {"spark1": told(A, "0" * 64), "spark2": told()}, A, again=False)
    assert done.build and "spark1: one of an earlier recipe" in done.note


def test_all_nodes_must_end_with_one_digest() -> None:
    assert image_build.settle(LOADED, answers(spark1=A, spark2=A), "") == (A, "")
    digest, refusal = image_build.settle(LOADED, answers(spark1=A, spark2=B), "")
    assert not digest and f"{A} on spark1; {B} on spark2" in refusal and "image_build_again=true" in refusal
    assert "missing on spark2" in image_build.settle(LOADED, answers(spark1=A, spark2=""), A)[1]
    pulled = {"spark1": told(A), "spark2": {**told(B), "digests": [A, B]}}
    assert image_build.settle(LOADED, pulled, A) == (A, ""), "its tag is set by the next step"


def test_the_first_spark_builds_or_the_one_that_is_named() -> None:
    assert image_build.builder(SPARKS, "", NODES) == "spark1"
    assert image_build.builder(SPARKS, "spark3", NODES) == "spark3"
    assert image_build.builder(SPARKS, "", NODES[2:]) == "spark3", "with --limit"
    with pytest.raises(InputError, match="'spark9' is none of the Sparks of this run; write one of spark1, spark2"):
        image_build.builder(SPARKS, "spark9", NODES)


def test_the_archive_goes_from_node_to_node_over_the_rails() -> None:
    row = {"id": image_build.model(LOADED), "commit": "c" * 40, "manifest": "m", "ok": True, "problems": []}
    checks = {node: [row if node == "spark2" else {**row, "ok": False, "manifest": ""}] for node in NODES}
    order = ["spark2", "spark1", "spark3", "spark4"]
    specs = image_build.chain(SPARKS, LOADED, order, checks, Settings(20900, 8))
    assert list(specs) == order and specs["spark2"]["source"] == {"kind": "own"}
    assert {spec["store"] for spec in specs.values()} == {image_build.STORE} != {SPARKS.model_store}
    rails = [rail.subnet.rsplit(".", 1)[0] for rail in SPARKS.fabric.rails]
    assert all(address.startswith(tuple(rails)) for address in specs["spark1"]["source"]["addresses"])
    assert {model["revision"] for spec in specs.values() for model in spec["models"]} == {"c" * 40}
    assert image_build.way(SPARKS, order[1:]) == "over the rails"


def test_a_node_is_told_the_whole_context_and_what_must_be_free() -> None:
    asked = image_build.asked(LOADED)
    assert b64decode(asked["context"]["Dockerfile"]) == image_context.context(LOADED)["Dockerfile"]
    assert (asked["disk_gb"], asked["memory_gib"], asked["online"]) == (60, 24, True)
    assert json.dumps(asked)
    assert image_build.archive(LOADED).startswith(f"{image_build.STORE}/by-name/")


def test_findings_name_the_place_and_errors_are_what_is_not_pinned() -> None:
    bare = LOADED.recipe.base.model_copy(update={"digest": None})
    loose = replace(LOADED, recipe=LOADED.recipe.model_copy(update={"base": bare}))
    rules = {(one.rule, one.severity) for one in image_build.findings(loose)}
    assert rules == {("image-recipe-unpinned", "error"), ("image-recipe-moves", "info")}
    (error,) = [one for one in image_build.findings(loose) if one.severity == "error"]
    assert "llama.cpp-b8399.yml:" in error.where and "has no digest" in error.message


def test_serving_an_image_that_nobody_has_built_is_refused_at_once() -> None:
    """Red before: every node asked a registry that cannot be, until its clock ran out."""
    image = LOADED.recipe.image
    nobody = {"spark1": {"tag": "", "digests": []}}
    decided = images.decide(images.wanted(image, {}, "", "images.yml"), nobody, may_pull=True)
    assert "sparkloom image build" in decided.refusal and not decided.pulls
    name, tag = LOADED.recipe.name_and_tag
    entry = Image(name, tag, A, "2026-11-25", "spark2")
    later = images.decide(images.wanted(image, {entry.of: entry}, "", "images.yml"), nobody, may_pull=True)
    assert later.pulls == {"spark1": f"{HOST}/llama.cpp@{A}"}, "a node that came later asks the others"
