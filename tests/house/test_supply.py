"""What the wheel brings is listed whole, with its hashes; a known fault fails lint unless it is waived for a while."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.lint import audit
from scripts.setup import sbom
from tests.places import REPO

FAULT = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "fix_versions": ["2.0"], "description": "x"}
TODAY = date(2026, 11, 26)


def test_the_bill_lists_packages_collections_images_and_files(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, REPO / "scripts/setup/sbom.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (bill,) = tmp_path.glob("*.cdx.json")
    made = json.loads(bill.read_text())
    assert made == sbom.bill(), "the same for the same source"
    parts = {one["bom-ref"]: one for one in made["components"]}
    assert len(parts) == len(made["components"])
    versions = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/versions.yml").read_text())
    assert {key for key in versions if key.endswith("_image")} <= parts.keys()
    assert {"k3s", "k3s_images", "k3s_cni"} <= parts.keys()
    bare = {ref for ref, one in parts.items() if "hashes" not in one and not ref.startswith("collection:")}
    assert bare == {"gateway_router_image"}, "which has no digest (tests/house/test_versions.py)"
    refs = {made["metadata"]["component"]["bom-ref"], *parts}
    assert all(one["ref"] in refs and set(one["dependsOn"]) <= refs for one in made["dependencies"])


def test_the_lock_beside_it_has_all_that_the_wheel_needs_and_no_more(tmp_path: Path) -> None:
    subprocess.run([sys.executable, REPO / "scripts/setup/sbom.py", tmp_path], check=True, capture_output=True)
    (lock,) = tmp_path.glob("*.lock")
    entries = sbom.ENTRY.findall(lock.read_text())
    names = {name for name, _ in entries}
    assert {"ansible-core", "kubernetes", "cryptography"} <= names and not {"pytest", "ruff", "mcp"} & names
    assert lock.read_text().count("==") >= len(names) > 30
    assert all("--hash=sha256:" in found[0] for found in sbom.ENTRY.finditer(lock.read_text()))


@pytest.mark.parametrize(
    ("waivers", "wrong"),
    [
        ([], ["it 1.0: PYSEC-2026-1, mended in 2.0"]),
        ([{"id": "CVE-2026-1", "until": date(2026, 12, 31), "why": "not called"}], []),
        ([{"id": "PYSEC-2026-1", "until": date(2026, 11, 25), "why": "x"}], ["it 1.0: PYSEC-2026-1, mended in 2.0"]),
        (
            [{"id": "PYSEC-2026-1", "until": TODAY, "why": "x"}, {"id": "CVE-1", "until": TODAY, "why": "x"}],
            ["CVE-1 is waived and found no more: take it out of audit_waivers.yml"],
        ),
    ],
)
def test_a_fault_is_waived_for_a_while(waivers: list[dict[str, Any]], wrong: list[str]) -> None:
    told = [{"name": "it", "version": "1.0", "vulns": [FAULT]}, {"name": "odd", "skip_reason": "unknown"}]
    assert list(audit.judged(told, waivers, TODAY)) == wrong


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("""echo '{"dependencies": [{"name": "it", "skip_reason": "not found"}]}'""", None),
        ("echo 'requests.exceptions.ConnectionError: refused' >&2; exit 1", None),
        ("""echo '{"dependencies": [{"name": "it", "vulns": []}]}'; exit 1""", [{"name": "it", "vulns": []}]),
    ],
)
def test_without_a_source_of_advisories_nothing_is_known(tmp_path: Path, program: str, told: Any) -> None:
    (tmp_path / "pip-audit").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "pip-audit").chmod(0o755)
    assert audit.known(tmp_path / "pip-audit", audit.LOCK) == told


def test_a_pip_audit_that_fails_by_itself_is_no_absence(tmp_path: Path) -> None:
    (tmp_path / "pip-audit").write_text("#!/bin/sh\necho 'no such option: --foo' >&2; exit 2\n")
    (tmp_path / "pip-audit").chmod(0o755)
    with pytest.raises(SystemExit, match="no such option"):
        audit.known(tmp_path / "pip-audit", audit.LOCK)


def test_a_waiver_says_until_when_and_why() -> None:
    for one in yaml.safe_load(audit.WAIVERS.read_text())["waivers"]:
        assert isinstance(one["until"], date) and one["why"] and one["id"]
