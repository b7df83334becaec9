"""The folder of release files that stands for the network: K3s (stand-in or real), CNI plugins, images, their sums."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from testbed.base import machine, names
from testbed.base.shell import RackError, out

PROGRAM = names.REPO / "testbed" / "standins" / "k3s"
FACTS = names.REPO / "scripts/sparkloom/render/k3s"
REAL, REAL_IMAGES = "SPARKLOOM_K3S_BINARY", "SPARKLOOM_K3S_IMAGES"
CNI = "v1.9.1"  # what the file is called; the plugins are the node image's own
THEN = (2026, 1, 1, 0, 0, 0)  # so that the same source gives the same file


def release() -> str:
    """The release that the example inventory pins."""
    text = (names.REPO / "inventories/gb10/group_vars/all/versions.yml").read_text()
    match = re.search(r"^k3s_version: (\S+)$", text, re.M)
    if not match:
        raise RackError("found no k3s_version in inventories/gb10/group_vars/all/versions.yml")
    return match[1]


def standin(target: Path, version: str) -> None:
    """One executable file, as K3s is: a zip of the stand-in's modules that Python runs."""
    scratch = target.with_suffix(".zip")
    with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive:
        members = {path.name: path.read_bytes() for path in sorted(PROGRAM.glob("*.py"))}
        facts = json.loads((FACTS / f"flags-{release()}.json").read_text()) | {"release": version}
        for name, data in {**members, "flags.json": json.dumps(facts).encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, THEN), data)
    target.write_bytes(b"#!/usr/bin/python3\n" + scratch.read_bytes())
    target.chmod(0o755)
    scratch.unlink()


def make(folder: Path, container: str) -> dict[str, Any]:
    """Fill the folder; CNI plugins come from a node. Returns what the inventory pins."""
    folder.mkdir(parents=True, exist_ok=True)
    arch = machine.architecture()
    program = folder / ("k3s" if arch == "amd64" else f"k3s-{arch}")
    images = folder / f"k3s-airgap-images-{arch}.tar.zst"
    plugins = folder / f"cni-plugins-linux-{arch}-{CNI}.tgz"
    version = release()
    if given := os.environ.get(REAL):
        shutil.copy2(given, program)
        match = re.search(r"v\d+\.\d+\.\d+\+k3s\d+", out([program, "--version"]))
        if not match:
            raise RackError(f"{REAL}: {given} --version names no release of K3s")
        version = match[0]
    else:
        standin(program, version)
    if given := os.environ.get(REAL_IMAGES):
        shutil.copy2(given, images)
    elif not images.exists():
        images.write_text("stand-in for an archive of images\n")
    if not plugins.exists():
        packed = ["tar", "-C", "/opt/cni/bin", "--mtime=@0", "-c", "./host-device", "./static"]
        tar = subprocess.run(["docker", "exec", container, *packed], check=True, capture_output=True).stdout
        plugins.write_bytes(gzip.compress(tar, 1, mtime=0))
    sums = {"k3s_sha256": program, "k3s_images_sha256": images, "k3s_cni_sha256": plugins}
    pins = {key: {arch: hashlib.sha256(path.read_bytes()).hexdigest()} for key, path in sums.items()}
    return {"k3s_version": version, "k3s_cni_version": CNI, **pins}
