"""The role as Ansible runs it, on this machine as one Spark: a real BuildKit builds, a real containerd has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sparkloom.base.repository import kept
from sparkloom.inputs import lock_file
from sparkloom.onnode.images.runtime import Runtime
from sparkloom.render.k3s import paths
from sparkloom.site.store import remote
from tests import inventories
from tests.onnode.images import buildx
from tests.onnode.images.test_build import NAME, tiny
from tests.onnode.images.test_images import REAL, Place, place
from tests.places import REPO

__all__ = ["place"]
OURS = (Path(paths.ARCHIVES), Path(remote.PLACE))
RECORD = kept("gb10") / "images" / "tiny.json"
PLAY = [{"hosts": "sparks", "gather_facts": False, "roles": ["image_build"]}]
ALONE = pytest.mark.skipif(
    any(folder.exists() for folder in OURS) or not buildx.answers(), reason="needs a dockerd, and no Sparkloom here"
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """The shipped inventory, a recipe out of nothing, and this machine as it was afterwards."""
    inventories.own(tmp_path, "site")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    told = tiny(tmp_path, machine).recipe.model_dump(mode="json", exclude_none=True)
    (tmp_path / "tiny.yml").write_text(yaml.safe_dump(told))
    (tmp_path / "play.yml").write_text(json.dumps(PLAY))
    yield tmp_path
    subprocess.run(["docker", "image", "rm", "-f", NAME], capture_output=True)
    for folder in OURS:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.name == "sparkloom" and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
    RECORD.unlink(missing_ok=True)


def play(site: Path, place: Place) -> str:
    given = {
        "ansible_connection": "local",
        "ansible_become": False,
        "image_build_recipe": str(site / "tiny.yml"),
        "image_build_runtimes": [{**place, "program": ""}],
    }
    found = f"{site / 'bin'}:{REPO}/.venv/bin:{os.environ['PATH']}"
    if not (site / "bin").exists() and subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode:
        buildx.wrapped(site / "bin")
    words = ["ansible-playbook", "-i", str(site / "site"), str(site / "play.yml"), "--limit", "spark1"]
    done = subprocess.run(
        [*words, "-e", json.dumps(given)], cwd=REPO, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PATH": found, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_ROLES_PATH": str(REPO / "roles")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@REAL
@ALONE
@pytest.mark.slow
def test_an_image_is_built_imported_and_locked_and_a_second_run_changes_nothing(site: Path, place: Place) -> None:
    told = play(site, place)
    assert "spark1 builds, by " in told and "is built, an archive of" in told and "nothing to hand on" in told
    (entry,) = lock_file.read(lock_file.place(site / "site"), lock_file.Image).values()
    assert entry.of == NAME and Runtime.here([place]).digests(f"name=={NAME}")[NAME] == entry.digest
    assert json.loads(RECORD.read_text())["digest"] == entry.digest
    assert not list((Path(paths.ARCHIVES) / "store").glob("models--*")), "no archive stays"
    again = play(site, place)
    assert "nothing to build" in again and "changed=0" in again
