"""Source patches as data: what shipped profiles name is here, applies to the released files, and only all at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.image import recipe, wheels
from scripts.oracle import fetch
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.judge import rules
from sparkloom.launch import patches
from sparkloom.onnode.rank import patching
from sparkloom.onnode.rank.patching import PatchError, digest

CASES = [(name, release) for name in patches.names() for release in patches.load(name).releases]


def told(name: str) -> dict[str, Any]:
    loaded = next(p for p in map(profile.load, profile.names()) if name in p.profile.engine.patches)
    return next(one for one in patches.of(loaded) if one["id"] == name)


def test_every_patch_is_needed_by_a_profile_and_every_name_has_data() -> None:
    needed = {name for one in profile.names() for name in profile.load(one).profile.engine.patches}
    assert needed == set(patches.names())


@pytest.mark.parametrize("name", patches.names())
def test_a_patch_says_what_it_is(name: str) -> None:
    patch = patches.load(name)
    assert patch.id == name and patch.reason.strip() and patch.source
    assert set(patch.released) == {edit.file for edit in patch.edits}
    assert all(set(known) == set(patch.releases) for known in patch.released.values())
    assert any(f"sparkloom {name}" in edit.replacement for edit in patch.edits), "a reader of the engine finds us"


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "release"), CASES)
def test_it_applies_to_the_released_files(name: str, release: str) -> None:
    """All places, once each, Python afterwards; a second time nothing is left to do."""
    patch = told(name)
    try:
        root = fetch.fetch_package(patch["package"], release) / wheels.INSIDE.get(patch["package"], "")
    except fetch.FetchError as error:
        pytest.skip(str(error))
    changed = patching.prepare([patch], lambda package: root / package)
    assert {f"{folder.name}/{inner}" for folder, inner in changed} == {edit["file"] for edit in patch["edits"]}
    for (folder, inner), text in changed.items():
        ast.parse(text)
        assert patching.released([patch], folder, inner), f"{release}: write sha256 of {inner} into {name}.toml"
    again = {edit["file"]: changed[root / edit["file"].split("/")[0], edit["file"].split("/", 1)[1]]
             for edit in patch["edits"]}  # fmt: skip
    assert all(patching.edited(patch, edit, again[edit["file"]]) == again[edit["file"]] for edit in patch["edits"])


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in profile.names() if profile.load(name).profile.engine.patches])
def test_a_profile_s_patches_apply_to_what_its_release_asks_for(name: str) -> None:
    """`python -m scripts.image check`: the wheels of the release that the profile names, and those that it pins."""
    loaded = profile.load(name)
    try:
        lines = recipe.check(loaded, wheels.of(loaded.profile.engine.name, loaded.profile.engine.release))
    except fetch.FetchError as error:
        pytest.skip(str(error))
    assert [line.split(":")[0] for line in lines] == loaded.profile.engine.patches
    assert all(": 0 files" not in line for line in lines)


Engine = Callable[..., Path]
PATCH = {
    "id": "louder", "package": "engine", "releases": ["1.0"], "released": {},
    "edits": [
        {"file": "engine/deep/voice.py", "anchor": "WORD = 'hello'\n", "replacement": "WORD = 'HELLO'\n"},
        {"file": "engine/ear.py", "anchor": "    return 1\n", "replacement": "    return 2\n"},
    ],
}  # fmt: skip
PATCH["edits"] = [{**edit, "anchor_sha256": digest(edit["anchor"])} for edit in PATCH["edits"]]  # type: ignore[attr-defined]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    package = tmp_path / "site/engine"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep/__init__.py").write_text("")
    (package / "deep/voice.py").write_text("import engine.deep.data as d\nWORD = 'hello'\n")
    (package / "deep/data.py").write_text("DATA = 7\n")
    (package / "ear.py").write_text("def hear():\n    return 1\n")
    return tmp_path / "site"


def ask(site: Path, overlay: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": f"{overlay}:{site}"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_copy_that_an_image_lacks_needs_no_change(site: Path) -> None:
    patch = {**PATCH, "only_where_present": True}
    (site / "engine/ear.py").unlink()
    changed = patching.prepare([patch], lambda name: site / name)
    assert [inner for _, inner in changed] == ["deep/voice.py"]
    assert patching.prepare([patch], lambda name: None) == {}


def test_the_overlay_is_what_python_finds_and_the_original_stays(site: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    before = (site / "engine/ear.py").read_text()
    ask(site, overlay, "import engine.deep.voice, engine.ear")  # leaves compiled files beside the original
    changed = patching.prepare([PATCH], lambda name: site / name)
    patching.build(overlay, changed)
    code = "import engine.deep.voice as v, engine.ear as e; print(v.WORD, v.d.DATA, e.hear())"
    assert ask(site, overlay, code) == "HELLO 7 2"
    assert (site / "engine/ear.py").read_text() == before
    patching.build(overlay, changed)  # a second start of the same container
    assert ask(site, overlay, code) == "HELLO 7 2"


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("ear.py", "def hear():\n    return 3\n", "its place in engine/ear.py was found 0 times, expected once"),
        ("ear.py", "def a():\n    return 1\ndef b():\n    return 1\n", "was found 2 times"),
        ("ear.py", "def hear():\n        return 1\n", "was found 0 times"),  # the same words, deeper: another place
        ("ear.py", None, "engine/ear.py is not in this image"),
    ],
)
def test_one_place_that_does_not_fit_refuses_all_by_name(site: Path, file: str, text: str | None, words: str) -> None:
    path = site / "engine" / file
    path.write_text(text) if text is not None else path.unlink()
    with pytest.raises(PatchError) as refused:
        patching.prepare([PATCH], lambda name: site / name)
    assert str(refused.value).startswith("patch louder: ") and words in str(refused.value)
    assert "it is written for engine 1.0" in str(refused.value)


def test_an_image_that_has_the_change_already_needs_nothing(site: Path) -> None:
    for (folder, inner), text in patching.prepare([PATCH], lambda name: site / name).items():
        (folder / inner).write_text(text)
    assert patching.prepare([PATCH], lambda name: site / name) == {}


def test_what_is_no_python_afterwards_is_refused(site: Path) -> None:
    edit = {"file": "engine/ear.py", "anchor": "    return 1\n", "replacement": "return 1\n"}
    broken = {**PATCH, "edits": [{**edit, "anchor_sha256": digest(edit["anchor"])}]}
    with pytest.raises(PatchError, match="is no Python any more after louder"):
        patching.prepare([broken], lambda name: site / name)


def test_a_damaged_anchor_is_refused(site: Path) -> None:
    edits: list[dict[str, str]] = [{**PATCH["edits"][0], "anchor": "WORD = 'hallo'\n"}]  # type: ignore[index]
    with pytest.raises(PatchError, match="is damaged"):
        patching.prepare([{**PATCH, "edits": edits}], lambda name: site / name)


def test_a_profile_with_a_patch_that_has_no_data_is_refused_and_linted() -> None:
    loaded = profile.load("nvidia--glm-4.7-nvfp4", overrides=["engine.patches=[no-such-patch]"])
    with pytest.raises(InputError, match="no patch 'no-such-patch'"):
        patches.of(loaded)
    view = rules.base.case(release="0.5.17", carries=frozenset({"patch:nvfp4-ep"}))
    assert [rule.id for rule in rules.fired(view) if rule.id == "patch-without-data"]
