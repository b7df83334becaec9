"""Giving an image archive to every node's containerd, without a registry."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base import docker, names
from testbed.base.shell import RackError, run
from testbed.beds.rack.faults import node
from testbed.make import oci

PINNED = "io.cri-containerd.pinned=pinned"
CTR = ["ctr", "--namespace=k8s.io", "images"]


def held(container: str) -> dict[str, str]:
    """{reference: digest} in a node's containerd."""
    rows = run(["docker", "exec", container, *CTR, "ls"]).stdout.splitlines()[1:]
    return {row.split()[0]: row.split()[2] for row in rows if len(row.split()) > 2}


def is_everywhere(archive: Path) -> bool:
    """By name and by what is in it: another build replaces it."""
    states = docker.containers()
    if not archive.is_file() or any(states.get(container) != "running" for container in names.NODES.values()):
        return False
    wanted = oci.references(archive)
    return all(wanted.items() <= held(container).items() for container in names.NODES.values())


def load(archive: Path, only: Sequence[str] = (), *, unpack: bool = False) -> dict[str, str]:
    """Import into all nodes (or `only`) at once; returns what was done per node: `loaded` or `has it`.

    What is not unpacked here is unpacked for the first container: for gigabytes that outlasts the kubelet's patience.
    """
    if not archive.is_file():
        raise RackError(f"found no archive at {archive}; expected an OCI or docker archive (tar)")
    references = oci.references(archive)
    if not references:
        raise RackError(f"{archive} names no image: give it a reference (io.containerd.image.name, or RepoTags)")
    chosen = [node(name)[1] for name in only] or list(names.NODES.values())
    states = docker.containers()
    down = [c for c in chosen if states.get(c) != "running"]
    if down:
        raise RackError(f"not running: {', '.join(down)}; `python -m testbed rack up` first")
    with ThreadPoolExecutor(len(chosen)) as pool:
        results = pool.map(lambda c: _load_one(c, archive, references, unpack), chosen)
        return dict(zip(chosen, results, strict=True))


def _load_one(container: str, archive: Path, references: dict[str, str], unpack: bool) -> str:
    there = held(container)
    if all(digest and there.get(reference) == digest for reference, digest in references.items()):
        return "has it"
    # pinned: the kubelet must not collect what no registry can give again
    # an older ctr knows no label where it unpacks
    how = [] if unpack else [f"--label={PINNED}", "--no-unpack"]
    command = ["docker", "exec", "-i", container, *CTR, "import", *how, "-"]
    with archive.open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, text=True)
    if done.returncode:
        raise RackError(f"{container} did not take {archive.name}: {(done.stderr or done.stdout).strip()[-500:]}")
    for reference in references if unpack else ():
        run(["docker", "exec", container, *CTR, "label", reference, PINNED])
    return "loaded"
