"""The image's build context: a pinned base, labels that tell what is inside, a program that changes files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.image import recipe
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.launch import patches

EP4 = "nvidia--qwen3.5-397b-a17b-nvfp4--ep4"
OMNI = "nvidia--nemotron-3-nano-omni-30b-a3b-reasoning-nvfp4"
DIGEST = "sha256:" + "ab" * 32


def test_the_base_is_pinned_and_the_labels_name_every_patch() -> None:
    loaded = profile.load(EP4)
    text = recipe.dockerfile(loaded, DIGEST)
    assert f"FROM {loaded.profile.engine.image}@{DIGEST}\n" in text
    assert f'sparkloom.patches="{" ".join(loaded.profile.engine.patches)}"' in text


@pytest.mark.parametrize("digest", ["", "latest", "sha256:12"])
def test_a_base_without_a_digest_is_refused(digest: str) -> None:
    with pytest.raises(InputError, match="no image digest"):
        recipe.dockerfile(profile.load(EP4), digest)


def test_a_profile_without_patches_needs_no_image() -> None:
    with pytest.raises(InputError, match="needs none"):
        recipe.dockerfile(profile.load("nvidia--nemotron-3-ultra-550b-a55b-nvfp4"), DIGEST)


def installed(tmp_path: Path, *, spoil: bool = False) -> Path:
    """A site folder whose files hold just the places that the profile's patches change."""
    site = tmp_path / "site"
    for edit in (edit for one in profile.load(OMNI).profile.engine.patches for edit in patches.load(one).edits):
        file = site / edit.file
        file.parent.mkdir(parents=True, exist_ok=True)
        (site / edit.file.split("/")[0] / "__init__.py").touch()
        before = file.read_text() if file.exists() else ""
        file.write_text(before + f'"""\n{edit.anchor}"""\n' if not spoil else before + "nothing = 1\n")
    return site


def build(tmp_path: Path, site: Path) -> subprocess.CompletedProcess[str]:
    recipe.write(recipe.context(profile.load(OMNI), DIGEST), tmp_path / "context")
    context = tmp_path / "context"
    command = [sys.executable, "-S", str(context / "apply.pyz"), str(context / "patches.json")]
    return subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(site)})


def test_the_context_changes_what_is_installed_and_does_it_once(tmp_path: Path) -> None:
    site = installed(tmp_path)
    done = build(tmp_path, site)
    assert done.returncode == 0, done.stderr
    files = {
        edit.file
        for one in json.loads((tmp_path / "context/patches.json").read_text())
        for edit in patches.load(one["id"]).edits
    }
    assert all("sparkloom nemotronh-omni-wrapper" in (site / file).read_text() for file in files)
    assert "0 files changed" in build(tmp_path, site).stdout


def test_a_place_that_is_not_there_ends_the_build_by_name(tmp_path: Path) -> None:
    done = build(tmp_path, installed(tmp_path, spoil=True))
    assert done.returncode == 1 and "nemotronh-omni-wrapper" in done.stderr and "found 0 times" in done.stderr
