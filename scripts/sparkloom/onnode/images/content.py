"""How far a pull is, from containerd's own store: layers that are there, and those that are being written.

A manifest says the size of every layer; a layer on its way is a folder below `ingest` with its name and its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 1_000_000  # bytes of a manifest; layers are larger, or small and no JSON


@dataclass(frozen=True)
class Progress:
    have: int = 0
    total: int = 0  # 0: the manifest is not there yet
    files_done: int = 0  # layers that are here
    files: int = 0


def progress(content: Path, since: float) -> Progress:
    """Of the largest image whose manifest came since then."""
    found = [_measured(content, manifest) for manifest in _manifests(content / "blobs" / "sha256", since)]
    return max(found, key=lambda one: one.total, default=Progress())


def _manifests(blobs: Path, since: float) -> Iterator[list[dict[str, Any]]]:
    for path in blobs.glob("*"):
        try:
            facts = path.stat()
            if facts.st_mtime < since or facts.st_size > LARGEST:
                continue
            layers = json.loads(path.read_bytes()).get("layers")
        except (OSError, ValueError, AttributeError):
            continue  # gone meanwhile, or something else
        if isinstance(layers, list):
            yield [layer for layer in layers if isinstance(layer, dict) and "digest" in layer]


def _measured(content: Path, layers: list[dict[str, Any]]) -> Progress:
    moving = dict(_moving(content / "ingest"))
    have = done = 0
    for layer in layers:
        size, digest = int(layer.get("size", 0)), str(layer["digest"])
        if (content / "blobs" / digest.replace(":", "/")).exists():
            have, done = have + size, done + 1
        else:
            have += min(moving.get(digest, 0), size)
    return Progress(have, sum(int(layer.get("size", 0)) for layer in layers), done, len(layers))


def _moving(ingest: Path) -> Iterator[tuple[str, int]]:
    """Digest of each layer on its way, and its bytes so far."""
    for folder in ingest.glob("*"):
        try:
            name = (folder / "ref").read_text().strip()
            yield "sha256:" + name.rpartition("sha256:")[2], (folder / "data").stat().st_size
        except OSError:
            continue
