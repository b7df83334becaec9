"""What a recipe of an image may say, and what its text does not fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import image_recipes
from sparkloom.inputs.image_recipes import HOST

GOOD = f"""\
summary: an engine
image: {HOST}/engine:1
serves: {{engine: vllm, release: "0.32.0"}}
epoch: 0
base: {{image: docker.io/org/base:1, digest: sha256:{"ab" * 32}, source: a page}}
needs: {{disk_gb: 1, memory_gib: 1}}
sources: [a page]
"""


def read(tmp_path: Path, more: str = "", **changes: str) -> image_recipes.LoadedRecipe:
    text = GOOD + more
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "mine.yml").write_text(text)
    return image_recipes.load(tmp_path / "mine.yml")


def refusal(tmp_path: Path, more: str = "", **changes: str) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, more, **changes)
    return str(caught.value)


def test_a_recipe_is_read_and_pinned(tmp_path: Path) -> None:
    loaded = read(tmp_path)
    assert loaded.name == "mine" and loaded.recipe.platform == "linux/arm64"
    assert image_recipes.unpinned(loaded.recipe) == image_recipes.moving(loaded.recipe) == []


@pytest.mark.parametrize(
    ("more", "changes", "said"),
    [
        ("basis: {}\n", {}, "unknown key 'basis'; did you mean 'base'?"),
        ("", {f"{HOST}/engine:1": "docker.io/org/engine:1"}, "must be built.sparkloom.invalid/NAME:TAG"),
        ("", {f"{HOST}/engine:1": f"{HOST}/engine"}, "must be built.sparkloom.invalid/NAME:TAG"),
        ("", {"ab" * 32: "ab" * 31}, "base.digest"),
        ("copies: [{path: /app, to: /app}]\n", {}, "there is none"),
        ("files: [{file: ../key, sha256: " + "0" * 64 + ", to: /key}]\n", {}, "is no file beside the recipe"),
        ('run: ["one\\ntwo"]\n', {}, "run.0"),
        ("packages: ['curl; rm -rf /']\n", {}, "packages.0"),
        ('env: {"A B": x}\n', {}, "env"),
        ("", {"docker.io/org/base:1": "scratch"}, "scratch is no image"),
    ],
)
def test_what_is_no_recipe_is_refused_where_it_stands(
    tmp_path: Path, more: str, changes: dict[str, str], said: str
) -> None:
    told = refusal(tmp_path, more, **changes)
    assert said in told and "mine.yml:" in told


def test_what_is_not_fixed_is_named_and_nothing_is_made_up(tmp_path: Path) -> None:
    loose = read(
        tmp_path,
        "wheels: [{name: vllm, version: 0.32.0}]\npackages: [curl, python3=3.12.3]\n"
        "build:\n  base: {image: docker.io/org/devel:1}\n"
        "  git: [{repository: https://example.org/a, ref: v1, to: /a}]\n",
        **{f", digest: sha256:{'ab' * 32}": ""},
    ).recipe
    assert [one.loc for one in image_recipes.unpinned(loose)] == [
        ("base", "image"), ("build", "base", "image"), ("wheels", 0)
    ]  # fmt: skip
    assert [one.message.split(" ")[0] for one in image_recipes.moving(loose)] == ["https://example.org/a", "2"]


def test_an_unknown_recipe_is_refused_with_the_near_one() -> None:
    with pytest.raises(InputError, match=r"llama\.cpp-b8399'.*image list"):
        image_recipes.load("llama.cpp-b8398")


def test_a_person_s_own_folder_has_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(tmp_path)
    monkeypatch.setenv(image_recipes.OWN, str(tmp_path))
    assert "mine" in image_recipes.names() and image_recipes.load("mine").recipe.summary == "an engine"


@pytest.mark.parametrize("name", image_recipes.names())
def test_shipped_recipes_are_pinned_and_say_from_where(name: str) -> None:
    recipe = image_recipes.load(name).recipe
    assert image_recipes.unpinned(recipe) == []
    bases = [recipe.base, *([recipe.build.base] if recipe.build else [])]
    assert all(base.source for base in bases) and recipe.platform == "linux/arm64" and recipe.proof
