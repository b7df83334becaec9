"""Removing from the cache what the rack of this checkout does not need."""

from __future__ import annotations

from pathlib import Path

from testbed.base import names, store
from testbed.base.shell import out
from testbed.make import binaries, envoy, golang, nodeimage, policy, prometheus, rootfs, traefik


def _needed() -> set[Path]:
    builds = {binaries.place(build.name) for build in binaries.BUILDS}
    builds |= {envoy.place(), envoy.archive().parent}
    builds |= {prometheus.place(), prometheus.EXPORTER.archive().parent, prometheus.SCRAPER.archive().parent}
    return builds | {traefik.place(), policy.place(), rootfs.rootfs().parent, rootfs.base().parent, *nodeimage.places()}


def superfluous() -> list[Path]:
    """Other generations of the rack's own artefacts, halves of killed builds, Go's caches and toolchain."""
    needed = _needed()
    steps = {path.name.rsplit("-", 1)[0] for path in needed}
    paths = [golang.ROOT, *names.CACHE.glob("toolchain-*")]
    for step in steps:
        key = "?" * 12
        paths += [path for path in names.CACHE.glob(f"{step}-{key}") if path not in needed]
        paths += names.CACHE.glob(f".{step}-{key}.part")
    return sorted(path for path in paths if path.exists())


def prune() -> dict[Path, int]:
    """{what was removed: its bytes}."""
    removed = {}
    for path in superfluous():
        removed[path] = int(out(["du", "-sb", path], check=False).split("\t")[0] or 0)
        store.remove_tree(path)
    return removed
