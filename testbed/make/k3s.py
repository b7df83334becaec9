"""The folder of release files that stands for the network: K3s (itself or a stand-in), CNI plugins, images, sums."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import machine, names
from testbed.base.shell import RackError, out
from testbed.make.real import k3s as itself

PROGRAM = names.REPO / "testbed" / "standins" / "k3s"
FACTS = names.REPO / "scripts/sparkloom/render/k3s"
WISH = "SPARKLOOM_K3S"  # `itself` or `stand-in`: no cache is looked into
GIVEN, GIVEN_IMAGES = "SPARKLOOM_K3S_BINARY", "SPARKLOOM_K3S_IMAGES"
CHARTS = ["traefik", "servicelb", "metrics-server", "local-storage"]  # whose images or charts no module has
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


@dataclass(frozen=True)
class Program:
    """What stands in the folder as K3s, and how it came there."""

    words: str
    path: Path | None = None  # none: the stand-in
    images: Path | None = None
    disable: tuple[str, ...] = ()


def chosen() -> Program:
    """K3s itself where it is built; a machine that never built it goes on with the stand-in, and says so."""
    wish = os.environ.get(WISH, "")
    if given := os.environ.get(GIVEN):
        images = os.environ.get(GIVEN_IMAGES)
        return Program(f"{GIVEN} says so", Path(given), Path(images) if images else None)
    if wish not in ("", "itself", "stand-in"):
        raise RackError(f"found {WISH}={wish}, expected itself, stand-in, or no such variable")
    if wish != "stand-in" and itself.is_built():
        return Program("K3s itself, built here", itself.program(), itself.images(), tuple(CHARTS))
    if wish == "itself":
        raise RackError("K3s itself is not built; `python -m testbed bare build` does it (25 minutes of one core)")
    why = f"{WISH} says so" if wish else "K3s itself is not built here: python -m testbed bare build"
    return Program(f"a stand-in ({why})")


def make(folder: Path, container: str, program: Program) -> dict[str, Any]:
    """Fill the folder; CNI plugins come from a node. Returns what the inventory pins."""
    folder.mkdir(parents=True, exist_ok=True)
    arch = machine.architecture()
    target = folder / ("k3s" if arch == "amd64" else f"k3s-{arch}")
    images = folder / f"k3s-airgap-images-{arch}.tar.zst"
    plugins = folder / f"cni-plugins-linux-{arch}-{CNI}.tgz"
    version = release()
    if program.path:
        shutil.copy2(program.path, target)
        match = re.search(r"v\d+\.\d+\.\d+\+k3s\d+", out([target, "--version"]))
        if not match:
            raise RackError(f"{program.path} --version names no release of K3s")
        version = match[0]
    else:
        standin(target, version)
    if program.images:
        shutil.copy2(program.images, images)
    else:
        images.write_text("stand-in for an archive of images\n")
    if not plugins.exists():
        packed = ["tar", "-C", "/opt/cni/bin", "--mtime=@0", "-c", "./host-device", "./static"]
        tar = subprocess.run(["docker", "exec", container, *packed], check=True, capture_output=True).stdout
        plugins.write_bytes(gzip.compress(tar, 1, mtime=0))
    sums = {"k3s_sha256": target, "k3s_images_sha256": images, "k3s_cni_sha256": plugins}
    pins = {key: {arch: hashlib.sha256(path.read_bytes()).hexdigest()} for key, path in sums.items()}
    program_facts = {"k3s_program": program.words, "k3s_disable": list(program.disable)}
    return {"k3s_version": version, "k3s_cni_version": CNI, **pins, **program_facts}
