"""`sparkloom image`: what a script gets, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.cli import images
from sparkloom.inputs import image_recipes
from tests import inventories
from tests.cli.window import piped

LOOSE = f"""\
summary: an engine
image: {image_recipes.HOST}/engine:1
serves: {{engine: vllm, release: "0.32.0"}}
epoch: 0
base: {{image: docker.io/org/base:1}}
needs: {{disk_gb: 1, memory_gib: 1}}
sources: [a page]
"""


def data(*words: str, code: int = 0) -> Any:
    done = piped("image", *words, "--json")
    assert done.code == code, done.errors
    return json.loads(done.text)


@pytest.fixture
def loose(tmp_path: Path) -> str:
    (tmp_path / "mine.yml").write_text(LOOSE)
    return str(tmp_path / "mine.yml")


def test_list_says_which_profiles_need_which_image() -> None:
    rows = {row["name"]: row for row in data("list")}
    assert set(rows) == set(image_recipes.names())
    assert rows["llama.cpp-b8399"]["profiles"] == ["unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"]
    assert all(row["unpinned"] == [] and row["image"] and row["sha256"] for row in rows.values())
    assert "llama.cpp-b8399" in piped("image", "list").text


def test_show_tells_all_and_ends_with_1_where_something_is_not_pinned(loose: str) -> None:
    told = data("show", "llama.cpp-b8399")
    assert told["recipe"]["base"]["digest"] and {one["severity"] for one in told["findings"]} == {"info"}
    told = data("show", loose, code=1)
    assert told["unpinned"] == ["base docker.io/org/base:1 has no digest"]
    assert "mine.yml:5" in piped("image", "show", loose).text


def test_render_prints_the_dockerfile_or_writes_the_folder(tmp_path: Path, loose: str) -> None:
    assert piped("image", "render", "llama.cpp-b8399").text.startswith("# llama.cpp-b8399: ")
    assert set(data("render", "llama.cpp-b8399")) == {"Dockerfile"}
    told = data("render", "llama.cpp-b8399", "-o", str(tmp_path / "out"))
    assert told["files"] == ["Dockerfile"] and (tmp_path / "out/Dockerfile").is_file()
    done = piped("image", "render", loose)
    assert done.code == 0 and "has no digest" in done.errors, "on stderr, so that it cannot pass unseen"


def test_a_build_of_what_is_not_pinned_is_refused_before_ansible(loose: str) -> None:
    done = piped("image", "build", loose)
    assert done.code == 1 and "image-recipe-unpinned" in done.errors and "--force" in done.errors


def test_without_a_name_the_site_s_profile_says_it() -> None:
    done = piped("image", "build", "-i", "inventories/gb10")
    assert done.code == 2 and "names no recipe" in done.errors and "image list" in done.errors


def test_what_is_no_recipe_is_unusable() -> None:
    done = piped("image", "show", "nothing")
    assert done.code == 2 and "no such recipe" in done.errors


def test_build_runs_the_playbook_and_gives_what_it_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **options: Any) -> Any:
        ran.append(command)
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images/llama.cpp-b8399.json").write_text('{"digest": "sha256:1"}\n')
        return SimpleNamespace(returncode=2 if "spark9" in " ".join(command) else 0)

    monkeypatch.setattr(images, "kept", lambda site: tmp_path)
    monkeypatch.setattr(images.subprocess, "run", run)
    words = ("build", "llama.cpp-b8399", "-i", str(inventories.own(tmp_path)), "--beside")
    assert data(*words, "--node", "spark3", "--limit", "spark3,spark4") == {"digest": "sha256:1"}
    (command,) = ran
    assert command[-1].endswith("playbooks/image.yml") and command[-3:-1] == ["--limit", "spark3,spark4"]
    chosen = json.loads(command[command.index("-e") + 1])
    assert chosen == {
        "image_build_recipe": "llama.cpp-b8399", "image_build_node": "spark3", "image_build_beside": True,
        "image_build_again": False, "image_build_force": False,
    }  # fmt: skip
    assert piped("image", *words, "--node", "spark9", "--limit", "x").code == 1, "a task failed"
