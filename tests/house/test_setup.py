"""What `make setup` installs is pinned, checked and free of any index's address."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.places import REPO

sys.path.insert(0, str(REPO / "scripts" / "setup"))
import fetch_collections

LOCKS = ["requirements.lock", "scripts/setup/collections.lock"]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_hashes_and_no_addresses(lock: str) -> None:
    text = (REPO / lock).read_text()
    assert "://" not in text and "index-url" not in text
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.M).strip())
    assert entries
    for entry in entries:
        assert "==" in entry and "--hash=sha256:" in entry, entry.splitlines()[0]


def test_lock_covers_the_pins_of_pyproject() -> None:
    lock = (REPO / "requirements.lock").read_text().lower()
    pins = re.findall(r'"([A-Za-z0-9_.-]+)==([^"]+)"', (REPO / "pyproject.toml").read_text())
    assert len(pins) > 15
    for name, version in pins:
        assert re.search(
            rf"^{re.escape(name.lower()).replace('_', '[-_]')}=={re.escape(version)} ",
            lock.replace("huggingface-hub", "huggingface_hub").replace("ruamel-yaml", "ruamel.yaml"),
            re.M,
        ), name


def test_installed_collections_are_those_named() -> None:
    for name, version in fetch_collections.wanted(REPO / "requirements.yml").items():
        manifest = REPO / ".venv/collections/ansible_collections" / name.replace(".", "/") / "MANIFEST.json"
        assert json.loads(manifest.read_text())["collection_info"]["version"] == version


def test_a_wrong_version_in_requirements_is_refused(tmp_path: Path) -> None:
    import zipfile

    wheel = tmp_path / "ansible-1.whl"
    with zipfile.ZipFile(wheel, "w") as bundle:
        info = json.dumps({"collection_info": {"version": "2.0.0"}})
        bundle.writestr("ansible_collections/a/b/MANIFEST.json", info)
    with pytest.raises(SystemExit, match=r"a\.b: ansible-1\.whl holds 2\.0\.0, requirements\.yml expects 1\.0\.0"):
        fetch_collections.extract(wheel, {"a.b": "1.0.0"}, tmp_path / "out")
    with pytest.raises(SystemExit, match=r"a\.c: not in"):
        fetch_collections.extract(wheel, {"a.c": "1.0.0"}, tmp_path / "out")
    fetch_collections.extract(wheel, {"a.b": "2.0.0"}, tmp_path / "out")
    assert (tmp_path / "out/ansible_collections/a/b/MANIFEST.json").exists()


def test_step_reports_name_time_and_passes_the_code_on() -> None:
    script = (
        'source scripts/setup/step.sh; step good "does well" true; step bad "does not" bash -c "exit 7"; echo unreached'
    )
    ran = subprocess.run(["bash", "-c", script], cwd=REPO, capture_output=True, text=True)
    assert ran.returncode == 7
    assert re.search(r"\[good\] does well\n\[good\] done in \d+\.\d s", ran.stdout)
    assert "[bad] FAILED after" in ran.stderr and "exit 7" in ran.stderr
    assert "unreached" not in ran.stdout


def test_with_a_log_a_person_sees_nothing_of_a_short_step_and_the_last_words_of_one_that_fails(tmp_path: Path) -> None:
    good, bad = 'step good "does well" echo many words', 'step bad "does not" bash -c "echo why; exit 7"'
    script = f"source scripts/setup/step.sh; {good}; {bad}"
    log = tmp_path / "all.log"
    env = {**os.environ, "SPARKLOOM_LOG": str(log)}
    ran = subprocess.run(["bash", "-c", script], cwd=REPO, capture_output=True, text=True, env=env)
    assert ran.returncode == 7 and ran.stdout == "", ran.stdout
    assert "many words\n[good] done in" in log.read_text()
    assert "  | why\n[bad] FAILED after" in ran.stderr and f"every line is in {log}" in ran.stderr


def test_a_step_stops_at_the_first_failing_line_of_a_function() -> None:
    script = (
        "set -e; source scripts/setup/step.sh; work() { false; echo went on; }; step work early work; echo unreached"
    )
    ran = subprocess.run(["bash", "-c", script], cwd=REPO, capture_output=True, text=True)
    assert ran.returncode == 1 and "went on" not in ran.stdout and "unreached" not in ran.stdout


def test_every_make_target_is_a_script_a_person_could_call() -> None:
    makefile = (REPO / "Makefile").read_text()
    for target in ("demo", "test", "lint", "setup", "clean"):
        script = re.search(rf"^{target}:.*\n\t@(\S+)\n(?!\t)", makefile, re.M)
        assert script, target
        assert (REPO / script[1]).stat().st_mode & 0o100, script[1]


def test_yaml_of_requirements_names_exact_versions() -> None:
    for entry in yaml.safe_load((REPO / "requirements.yml").read_text())["collections"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", str(entry["version"])), entry


def test_every_file_that_lies_beside_a_module_is_installed_with_it() -> None:
    """A template or style sheet that the wheel lacks is missed only by people who did not install from a checkout."""
    patterns = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["sparkloom"]
    listed = subprocess.run(["git", "ls-files", "scripts/sparkloom"], cwd=REPO, capture_output=True, text=True)
    files = [Path(name) for name in listed.stdout.splitlines() if not name.endswith(".py")]
    assert files
    lacking = [str(file) for file in files if not any(file.match(pattern.removeprefix("**/")) for pattern in patterns)]
    assert not lacking


def test_the_packages_are_compiled_once_and_not_by_each_run() -> None:
    """On the old code a run of Ansible spent 1.7 s of its processor on that where Python may write nothing."""
    for package in ("ansible", "kubernetes"):
        source = importlib.util.find_spec(package)
        assert source and source.origin
        assert Path(importlib.util.cache_from_source(source.origin)).is_file(), package
