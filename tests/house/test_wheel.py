"""The wheel is enough: unpacked far from any checkout, it plans, renders and finds its playbooks and inventory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.places import REPO

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's contents."""
    assert wheel.stat().st_size < 8_000_000
    site = tmp_path_factory.mktemp("wheel") / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


def run(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-P", "-m", "sparkloom.cli", *words]
    return subprocess.run(command, cwd=folder, env={**kept, "PYTHONPATH": str(site)}, capture_output=True, text=True)


@pytest.mark.slow
def test_it_plans_and_renders_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "plan", "ultra-550b-a55b-nvfp4", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["profile"] == ULTRA and plan["fits"] is True and len(plan["launch"]["ranks"]) == 4
    assert str(REPO) not in done.stdout
    done = run(installed, tmp_path, "render", ULTRA, "-o", "out")
    assert done.returncode == 0 and (tmp_path / "out" / f"{ULTRA}.yaml").is_file(), done.stderr


@pytest.mark.slow
def test_it_carries_what_site_yml_needs_and_nothing_of_the_test_bed(installed: Path) -> None:
    tree = installed / "sparkloom" / "tree"
    for top in ("playbooks", "roles", "plugins", "model_profiles", "inventories/gb10"):
        told = {path.relative_to(REPO) for path in (REPO / top).rglob("*") if path.is_file()}
        told = {path for path in told if "__pycache__" not in path.parts}
        assert told and all((tree / path).is_file() for path in told), top
    assert (tree / "site.yml").is_file() and (tree / "ansible.cfg").is_file()
    assert not [path for path in installed.rglob("*") if "testbed" in path.parts]
    assert not (tree / "inventories/kind").exists()


@pytest.mark.slow
def test_what_a_site_leaves_lies_where_the_person_works(installed: Path, tmp_path: Path) -> None:
    """`fabric discover` and the memory that preflight measured once went into the package itself."""
    measured = tmp_path / "build" / "gb10" / "memory.json"
    measured.parent.mkdir(parents=True)
    measured.write_text(json.dumps({"cuda_free_gib": {f"spark{n}": [60.0, 61.0] for n in (1, 2, 3, 4)}}))
    done = run(installed, tmp_path, "plan", ULTRA, "--json")
    assert json.loads(done.stdout)["fits"] is False, done.stderr
    text = "".join(path.read_text() for path in (installed / "sparkloom/site").rglob("*.py"))
    assert 'REPO / "build"' not in text
