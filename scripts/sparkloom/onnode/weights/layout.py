"""What lies where in a store: a hub cache as huggingface_hub reads it, and our manifests beside it."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

COMMIT = re.compile(r"[0-9a-f]{40}")


class StoreError(Exception):
    """One sentence: what was found, what was expected, what to change."""


@dataclass(frozen=True)
class Entry:
    """One file of a snapshot. `blob` is the name that the hub cache gives its content."""

    path: str
    size: int
    blob: str
    sha256: str


@dataclass(frozen=True)
class Snapshot:
    id: str
    commit: str
    files: tuple[Entry, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Snapshot:
        """From JSON that another node sent: a path that would leave the snapshot's folder is refused."""
        files = tuple(Entry(**file) for file in data["files"])
        for file in files:
            parts = PurePosixPath(file.path)
            if parts.is_absolute() or ".." in parts.parts or not re.fullmatch(r"[0-9a-f]{40,64}", file.blob):
                raise StoreError(f"the manifest of {data['id']} lists '{file.path}', which is no path in a snapshot")
        return cls(data["id"], data["commit"], files)


class Store:
    """The folder that a node mounts into every rank."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def repository(self, model: str) -> Path:
        return self.root / f"models--{model.replace('/', '--')}"

    def snapshot(self, model: str, commit: str) -> Path:
        return self.repository(model) / "snapshots" / commit

    def blob(self, model: str, entry: Entry) -> Path:
        return self.repository(model) / "blobs" / entry.blob

    def link(self, model: str) -> Path:
        return self.root / "by-name" / model.replace("/", "--")

    def manifest(self, model: str, commit: str) -> Path:
        return self.root / "manifests" / model.replace("/", "--") / f"{commit}.json"

    def current(self, model: str) -> str | None:
        """The commit that engines get when they name the model only."""
        try:
            return (self.repository(model) / "refs" / "main").read_text().strip() or None
        except FileNotFoundError:
            return None

    def commit(self, model: str, revision: str | None) -> str | None:
        """What a revision means here: itself where it is a commit, else the one that is current."""
        return revision if revision and COMMIT.fullmatch(revision) else self.current(model)

    def read(self, model: str, commit: str) -> tuple[Snapshot, dict[str, int]] | None:
        """A verified snapshot and each blob's time of change when it was verified."""
        try:
            data = json.loads(self.manifest(model, commit).read_text())
            return Snapshot.of(data["snapshot"]), data["verified"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def times(self, model: str) -> dict[str, int]:
        """Every blob that was ever verified here, with its time of change then."""
        times: dict[str, int] = {}
        for path in self.manifest(model, "").parent.glob("*.json"):
            known = self.read(model, path.stem)
            times |= known[1] if known else {}
        return times

    def publish(self, snapshot: Snapshot) -> None:
        """Every file is there and verified: make it a snapshot that engines find, and write down what was verified."""
        folder = self.snapshot(snapshot.id, snapshot.commit)
        for entry in snapshot.files:
            _point(folder / entry.path, self.blob(snapshot.id, entry))
        _point(self.link(snapshot.id), folder)
        times = {e.blob: self.blob(snapshot.id, e).stat().st_mtime_ns for e in snapshot.files}
        content = json.dumps({"snapshot": snapshot.as_dict(), "verified": times}, indent=1)
        write(self.manifest(snapshot.id, snapshot.commit), content.encode())
        write(self.repository(snapshot.id) / "refs" / "main", snapshot.commit.encode())


def _point(link: Path, target: Path) -> None:
    """A relative link, so that it holds wherever the store is mounted; replaced in one step."""
    text = os.path.relpath(target, link.parent)
    if link.is_symlink() and os.readlink(link) == text:  # noqa: PTH115 - the text, not what it leads to
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    scratch = link.with_name(f".{link.name}.new")
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(text)
    scratch.replace(link)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_bytes(content)
    scratch.replace(path)


def matches(path: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def wanted(path: str, want: dict[str, Any]) -> bool:
    """Is this file one of those that an engine loads?"""
    return matches(path, want["include"]) and not matches(path, want["exclude"])


def listing(store: Store) -> list[dict[str, Any]]:
    """Every verified snapshot with its bytes; `current` is the one that engines get by the model's name."""
    snapshots = []
    for path in sorted((store.root / "manifests").glob("*/*.json")):
        snapshot = json.loads(path.read_text())["snapshot"]
        current = store.current(snapshot["id"]) == snapshot["commit"]
        size = sum(file["size"] for file in snapshot["files"])
        snapshots.append({"id": snapshot["id"], "commit": snapshot["commit"], "bytes": size, "current": current})
    return snapshots


def remove(store: Store, models: list[str]) -> list[str]:
    """The models that were there and are not any more. The manifest goes first: half a model is no verified one."""
    gone = []
    for model in models:
        if model.count("/") != 1 or ".." in model:
            raise StoreError(f"'{model}' is no model's name; write org/name in model_store_remove")
        if store.repository(model).is_dir():
            shutil.rmtree(store.manifest(model, "").parent, ignore_errors=True)
            store.link(model).unlink(missing_ok=True)
            shutil.rmtree(store.repository(model))
            gone.append(model)
    for folder in (store.root / "by-name", store.root / "manifests", store.root):
        with contextlib.suppress(OSError):  # not empty: other models, or what someone else keeps there
            folder.rmdir()
    return gone
