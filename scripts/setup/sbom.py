"""What the wheel needs, for who installs it and for who has to answer for it.

`.venv/bin/python scripts/setup/sbom.py [FOLDER]` writes into FOLDER (default: build/wheel)
sparkloom-VERSION.cdx.json   a bill of materials, CycloneDX 1.6: packages, collections, images, K3s' files
sparkloom-VERSION.lock       the packages with their hashes, for `pip install --require-hashes --no-deps -r`
Both come from requirements.lock, requirements.yml, the example inventory's versions.yml and what is installed here.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==(\S+).*?(?=^\S|\Z)", re.M | re.S)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
IMAGE = re.compile(r"(?P<place>[^@\s]+/(?P<name>[\w.-]+)):(?P<tag>[\w.-]+)(?:@sha256:(?P<digest>[0-9a-f]{64}))?")


def project() -> dict[str, Any]:
    return dict(tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"])


@cache
def locked() -> dict[str, str]:
    """What requirements.lock says of each package, by its name."""
    text = (REPO / "requirements.lock").read_text(encoding="utf-8")
    return {canonicalize_name(found[1]): found[0].rstrip() for found in ENTRY.finditer(text)}


def needs(lines: list[str]) -> list[str]:
    """Of requirements those that hold here, without extras."""
    read = [Requirement(line) for line in lines]
    return [canonicalize_name(one.name) for one in read if not one.marker or one.marker.evaluate({"extra": ""})]


@cache
def closure() -> dict[str, list[str]]:
    """Each package that the wheel brings, and what it needs itself."""
    found: dict[str, list[str]] = {}
    waiting = needs(project()["dependencies"])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = sorted(needs(metadata.requires(name) or []))
            waiting += found[name]
    return dict(sorted(found.items()))


def hashed(values: list[str]) -> dict[str, Any]:
    return {"hashes": [{"alg": "SHA-256", "content": value} for value in values]} if values else {}


def packages() -> Iterator[dict[str, Any]]:
    """With the hash of each file that the lock admits."""
    lock = locked()
    for name in closure():
        version, told = metadata.version(name), metadata.metadata(name)
        licence = told.get("License-Expression")
        purl = f"pkg:pypi/{name}@{version}"
        yield (
            {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
            | ({"licenses": [{"expression": licence}]} if licence else {})
            | hashed(HASH.findall(lock[name]))
        )


def collections() -> Iterator[dict[str, Any]]:
    for one in yaml.safe_load((REPO / "requirements.yml").read_text(encoding="utf-8"))["collections"]:
        group, _, name = one["name"].partition(".")
        ref = f"collection:{one['name']}@{one['version']}"
        yield {"type": "library", "bom-ref": ref, "group": group, "name": name, "version": one["version"]}


def installed() -> Iterator[dict[str, Any]]:
    """What playbooks install on nodes: images by digest, files by checksum."""
    path = REPO / "inventories/gb10/group_vars/all/versions.yml"
    versions = yaml.safe_load(path.read_text(encoding="utf-8"))
    for key, value in versions.items():
        if key.endswith("_image"):
            found = IMAGE.fullmatch(value)
            assert found, f"{key}: {value} is no image"
            part = f"@sha256%3A{found['digest']}" if found["digest"] else ""
            purl = f"pkg:oci/{found['name']}{part}?repository_url={found['place']}&tag={found['tag']}"
            image = {"type": "container", "bom-ref": key, "name": found["place"], "version": found["tag"], "purl": purl}
            yield image | hashed([found["digest"]] if found["digest"] else [])
        elif key.endswith("_sha256"):
            name = key.removesuffix("_sha256")
            version = versions.get(f"{name}_version", versions["k3s_version"])
            yield {"type": "application", "bom-ref": name, "name": name, "version": version} | hashed([*value.values()])


def bill() -> dict[str, Any]:
    """The same for the same source: no time, and a serial number of what it says."""
    told = project()
    ref = f"pkg:pypi/sparkloom@{told['version']}"
    parts = [*packages(), *collections(), *installed()]
    refs = {one["name"]: one["bom-ref"] for one in parts if one["bom-ref"].startswith("pkg:pypi/")}
    wants = [{"ref": refs[name], "dependsOn": [refs[one] for one in wanted]} for name, wanted in closure().items()]
    direct = [refs[name] for name in sorted(needs(told["dependencies"]))]
    direct += [one["bom-ref"] for one in parts if one["bom-ref"] not in refs.values()]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([told["version"], parts], sort_keys=True))
    root = {"type": "application", "bom-ref": ref, "name": "sparkloom", "version": told["version"], "purl": ref}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": root | {"licenses": [{"expression": told["license"]}]}},
        "components": parts,
        "dependencies": [{"ref": ref, "dependsOn": direct}, *wants],
    }


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else REPO / "build/wheel"
    folder.mkdir(parents=True, exist_ok=True)
    made, lock = bill(), locked()
    stem = folder / f"sparkloom-{project()['version']}"
    Path(f"{stem}.cdx.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    Path(f"{stem}.lock").write_text("".join(f"{lock[name]}\n" for name in closure()), encoding="utf-8")
    print(f"{stem}.cdx.json: {len(made['components'])} components; {stem}.lock: {len(closure())} packages")


if __name__ == "__main__":
    main()
