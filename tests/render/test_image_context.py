"""A recipe as the folder that is built from: the text that was looked at, and what must hold of any."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import image_recipes
from sparkloom.inputs.image_recipes import LoadedRecipe
from sparkloom.launch import engines, patches
from sparkloom.render import image_context
from tests import golden_files

LLAMA = "llama.cpp-b8399"


def changed(loaded: LoadedRecipe, **changes: Any) -> LoadedRecipe:
    return replace(loaded, recipe=type(loaded.recipe).model_validate(loaded.recipe.model_dump() | changes))


def dockerfile(loaded: LoadedRecipe) -> str:
    return image_context.context(loaded)["Dockerfile"].decode()


@pytest.mark.parametrize("name", image_recipes.names())
def test_golden_dockerfile(name: str) -> None:
    golden_files.check("image-recipes", f"{name}.Dockerfile", dockerfile(image_recipes.load(name)))


def test_the_same_recipe_is_the_same_bytes_and_any_change_another_identity() -> None:
    loaded = image_recipes.load(LLAMA)
    assert image_context.context(loaded) == image_context.context(image_recipes.load(LLAMA))
    identity = image_context.of(loaded)
    assert f'{image_context.IDENTITY}="{identity}"' in dockerfile(loaded)
    for change in ({"packages": ["python3"]}, {"env": {"A": "b"}}, {"run": ["true"]}, {"labels": {}}):
        assert image_context.of(changed(loaded, **change)) != identity
    assert image_context.of(changed(loaded, unknown=[])) == identity, "what is said beside it builds nothing"


def test_no_line_fetches_a_frontend_and_no_layer_keeps_what_was_downloaded() -> None:
    text = dockerfile(image_recipes.load(LLAMA))
    assert "syntax" not in text and text.count("FROM ") == 2 and text.count("@sha256:") == 2
    assert all("--mount=type=cache" in step for step in text.split("\nRUN ")[1:] if "apt-get" in step)
    assert text.count("ARG SOURCE_DATE_EPOCH") == 2, "in each stage: its steps write that time"


def test_wheels_are_installed_by_their_content_alone() -> None:
    loaded = changed(
        image_recipes.load(LLAMA),
        wheels=[
            {"name": "b", "version": "2", "sha256": ["1" * 64, "2" * 64]},
            {"name": "A", "version": "1", "sha256": ["0" * 64]},
        ],
    )
    context = image_context.context(loaded)
    assert context["requirements.txt"].decode() == (
        f"A==1 \\\n    --hash=sha256:{'0' * 64}\n"
        f"b==2 \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'2' * 64}\n"
    )
    step = next(part for part in context["Dockerfile"].decode().split("\nRUN ") if "pip install" in part)
    assert "--require-hashes" in step and "--no-deps" in step and "--only-binary :all:" in step
    loose = changed(loaded, wheels=[{"name": "b", "version": "2", "sha256": []}])
    assert "--require-hashes" not in dockerfile(loose), "pip refuses to mix; the recipe's finding says it"


def test_a_file_beside_the_recipe_is_judged_by_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    digest = hashlib.sha256(b"x = 1\n").hexdigest()
    loaded = replace(image_recipes.load(LLAMA), folder=tmp_path)
    good = changed(loaded, files=[{"file": "a.py", "sha256": digest, "to": "/a.py", "unpack": False}])
    assert "COPY a.py /a.py" in dockerfile(good) and image_context.context(good)["a.py"] == b"x = 1\n"
    with pytest.raises(InputError, match=f"a.py has sha256 {digest}, expected 000"):
        dockerfile(changed(loaded, files=[{"file": "a.py", "sha256": "0" * 64, "to": "/a.py", "unpack": False}]))
    with pytest.raises(InputError, match="expected beside the recipe"):
        dockerfile(changed(loaded, files=[{"file": "b.py", "sha256": "0" * 64, "to": "/b.py", "unpack": False}]))


def test_our_patches_travel_with_the_program_that_applies_them() -> None:
    loaded = changed(image_recipes.load(LLAMA), patches=["nvfp4-ep"])
    context = image_context.context(loaded)
    assert json.loads(context["patches.json"]) == patches.as_data(["nvfp4-ep"]) and context["apply.pyz"]
    assert 'sparkloom.patches="nvfp4-ep"' in context["Dockerfile"].decode()
    with pytest.raises(InputError, match="no patch 'nvfp4'"):
        image_context.context(changed(loaded, patches=["nvfp4"]))


def test_a_value_is_not_filled_in_by_the_build() -> None:
    assert 'ENV A="\\$HOME \\"b\\""' in dockerfile(changed(image_recipes.load(LLAMA), env={"A": '$HOME "b"'}))


def test_a_recipe_that_downloads_nothing_is_built_without_network() -> None:
    loaded = image_recipes.load(LLAMA)
    assert image_context.online(loaded.recipe)
    assert not image_context.online(changed(loaded, build=None, copies=[], packages=[]).recipe)


@pytest.mark.parametrize("called", ["rpc-server", "ggml-rpc-server"])
def test_llama_cpp_s_own_words_leave_every_program_under_every_name(tmp_path: Path, called: str) -> None:
    """The last steps of the recipe itself, run on what such a build leaves."""
    recipe = image_recipes.load(LLAMA).recipe
    assert recipe.build
    made = tmp_path / "build/bin"
    made.mkdir(parents=True)
    for name, text in (("llama-server", "echo ' --rpc SERVERS'"), (called, "echo lends"), ("libggml-rpc.so", "")):
        (made / name).write_text(f"#!/bin/sh\n{text}\n")
        (made / name).chmod(0o755)

    def run(words: str) -> int:
        return subprocess.run(["sh", "-ec", words.replace("/app", str(tmp_path / "app"))], cwd=tmp_path).returncode

    assert [run(words) for words in recipe.build.run[2:]] == [0, 0]
    paths = [path for names in engines.catalog("llamacpp", "b8399").programs.values() for path in names]
    assert all((tmp_path / path.lstrip("/")).resolve().is_file() for path in paths)
    assert [run(words) for words in recipe.proof[:2]] == [0, 0]
    (tmp_path / "app/llama-server").write_text("#!/bin/sh\necho no such thing\n")
    assert run(recipe.proof[0]), "a build without RPC ends here"
    assert "-DGGML_RPC=ON" in recipe.build.run[0] and "-DCMAKE_CUDA_ARCHITECTURES=121a-real" in recipe.build.run[0]
    assert f"-DLLAMA_BUILD_NUMBER={recipe.serves.release[1:]} " in recipe.build.run[0]
