"""Put the collections that requirements.yml pins into a folder, out of the `ansible` bundle wheel.

Ansible's own gallery is often out of reach where a Python index is not, and the bundle carries the same files.
The wheel is pinned with its hash in collections.lock; only the named collections leave it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent


def wanted(requirements: Path) -> dict[str, str]:
    """Collection name -> exact version, as a person reads them in requirements.yml."""
    listed = yaml.safe_load(requirements.read_text())["collections"]
    return {entry["name"]: str(entry["version"]) for entry in listed}


def download(lock: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--require-hashes", "-r", str(lock), "-d", str(into)], check=True)
    return next(into.glob("ansible-*.whl"))


def extract(wheel: Path, collections: dict[str, str], into: Path) -> None:
    with zipfile.ZipFile(wheel) as bundle:
        names = bundle.namelist()
        for name, version in collections.items():
            prefix = f"ansible_collections/{name.replace('.', '/')}/"
            manifest = prefix + "MANIFEST.json"
            if manifest not in names:
                raise SystemExit(
                    f"{name}: not in {wheel.name}; remove it from requirements.yml or change collections.lock"
                )
            actual = json.loads(bundle.read(manifest))["collection_info"]["version"]
            if actual != version:
                raise SystemExit(
                    f"{name}: {wheel.name} holds {actual}, requirements.yml expects {version}; "
                    "change requirements.yml or the bundle in scripts/setup/collections.lock"
                )
            bundle.extractall(into, [entry for entry in names if entry.startswith(prefix)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder for collections_path")
    target: Path = parser.parse_args().into
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        wheel = download(HERE / "collections.lock", Path(scratch))
        made = Path(scratch) / "made"
        extract(wheel, wanted(REPO / "requirements.yml"), made)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


if __name__ == "__main__":
    main()
