"""What lies where in a store: a hub cache as huggingface_hub reads it, and our manifests beside it."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import shutil
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights import names
from sparkloom.onnode.weights.manifest import Entry, Snapshot
from sparkloom.onnode.weights.names import COMMIT, StoreError


class Store:
    """The folder that a node mounts into every rank."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def repository(self, model: str) -> Path:
        return self.root / f"models--{_folder(model)}"

    def snapshot(self, model: str, commit: str) -> Path:
        return self.repository(model) / "snapshots" / names.commit(commit)

    def blob(self, model: str, entry: Entry) -> Path:
        return self.repository(model) / "blobs" / entry.blob

    def link(self, model: str) -> Path:
        return self.root / "by-name" / _folder(model)

    def manifests(self, model: str) -> Path:
        return self.root / "manifests" / _folder(model)

    def manifest(self, model: str, commit: str) -> Path:
        return self.manifests(model) / f"{names.commit(commit)}.json"

    def current(self, model: str) -> str | None:
        """The commit that engines get when they name the model only."""
        try:
            text = (self.repository(model) / "refs" / "main").read_text().strip()
        except (FileNotFoundError, ValueError):
            return None
        return text if COMMIT.fullmatch(text) else None

    def commit(self, model: str, revision: str | None) -> str | None:
        """What a revision means here: itself where it is a commit, else the one that is current."""
        return revision if revision and COMMIT.fullmatch(revision) else self.current(model)

    def read(self, model: str, commit: str) -> tuple[Snapshot, dict[str, int]] | None:
        """A verified snapshot and each blob's time of change when it was verified."""
        try:
            data = json.loads(self.manifest(model, commit).read_text())
            snapshot, times = Snapshot.of(data["snapshot"]), data["verified"]
        except (FileNotFoundError, ValueError, KeyError, TypeError, StoreError):
            return None
        return (snapshot, times) if (snapshot.id, snapshot.commit) == (model, commit) else None

    def times(self, model: str) -> dict[tuple[str, str], int]:
        """Every content that was ever verified here, by blob and sha256, with its time of change then.

        By both: git's hash names a small file, and it is the sha256 that was verified.
        """
        times: dict[tuple[str, str], int] = {}
        for path in self.manifests(model).glob("*.json"):
            if COMMIT.fullmatch(path.stem) and (known := self.read(model, path.stem)):
                times |= {(e.blob, e.sha256): known[1][e.blob] for e in known[0].files if e.blob in known[1]}
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


def _folder(model: str) -> str:
    return names.model(model).replace("/", "--")


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
        snapshot = Snapshot.of(json.loads(path.read_text())["snapshot"])
        current = store.current(snapshot.id) == snapshot.commit
        snapshots.append({"id": snapshot.id, "commit": snapshot.commit, "bytes": snapshot.size, "current": current})
    return snapshots


def remove(store: Store, models: list[str]) -> list[str]:
    """The models that were there and are not any more. The manifest goes first: half a model is no verified one."""
    gone = []
    for model in models:
        try:
            names.model(model)
        except StoreError as error:
            raise StoreError(f"{error} in model_store_remove") from None
        if store.repository(model).is_dir():
            shutil.rmtree(store.manifests(model), ignore_errors=True)
            store.link(model).unlink(missing_ok=True)
            shutil.rmtree(store.repository(model))
            gone.append(model)
    for folder in (store.root / "by-name", store.root / "manifests", store.root):
        with contextlib.suppress(OSError):  # not empty: other models, or what someone else keeps there
            folder.rmdir()
    return gone
