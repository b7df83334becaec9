"""What lies where in a store: a hub cache as huggingface_hub reads it, and our manifests beside it.

A manifest says what a snapshot is: its files with their hashes. Whoever says so, it is judged as it is made.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sparkloom.onnode.host import backup
from sparkloom.onnode.weights import names
from sparkloom.onnode.weights.names import COMMIT, StoreError, shown

FILES = 20_000  # of one snapshot
LARGEST = 1 << 42  # bytes of one file
FIELDS = ("path", "size", "blob", "sha256")


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
        content = json.dumps({"snapshot": asdict(snapshot), "verified": times}, indent=1)
        backup.write(self.manifest(snapshot.id, snapshot.commit), content, 0o644)
        backup.write(self.repository(snapshot.id) / "refs" / "main", snapshot.commit, 0o644)


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


@dataclass(frozen=True)
class Entry:
    """One file of a snapshot. `blob` is the name that the hub cache gives its content."""

    path: str
    size: int
    blob: str
    sha256: str

    def __post_init__(self) -> None:
        names.file_path(self.path)
        names.blob(self.blob)
        names.sha256(self.sha256)
        if type(self.size) is not int or not 0 <= self.size <= LARGEST:
            raise StoreError(f"{self.path} has '{shown(self.size)}' bytes; expected 0 to {LARGEST}")
        if len(self.blob) == len(self.sha256) and self.blob != self.sha256:
            raise StoreError(f"{self.path}: its blob is called {self.blob}, its sha256 is {self.sha256}")


@dataclass(frozen=True)
class Snapshot:
    """Files in the order of their paths: equal contents are equal bytes, whoever listed them."""

    id: str
    commit: str
    files: tuple[Entry, ...]

    def __post_init__(self) -> None:
        names.model(self.id)
        names.commit(self.commit)
        if len(self.files) > FILES:
            raise StoreError(f"{self.id} lists {len(self.files)} files; at most {FILES} are taken")
        object.__setattr__(self, "files", tuple(sorted(self.files, key=lambda file: file.path)))
        _consistent(self)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def canonical(self) -> bytes:
        """The manifest as one node gives it to the next."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """What the controller carries from the first node to the others: id, commit and every file hang on it."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @classmethod
    def of(cls, data: Any) -> Snapshot:
        """From JSON that another node sent or an earlier run wrote."""
        try:
            listed = data["files"]
            if not isinstance(listed, list) or len(listed) > FILES:
                raise StoreError(f"a manifest lists no files, or more than {FILES}")
            return cls(data["id"], data["commit"], tuple(Entry(*(file[field] for field in FIELDS)) for file in listed))
        except (KeyError, TypeError) as error:
            raise StoreError(f"a manifest is none: {type(error).__name__} {shown(error)}") from None


def _consistent(snapshot: Snapshot) -> None:
    """No path twice, none that is a file and a folder, and one content per blob."""
    paths, blobs = {file.path for file in snapshot.files}, dict[str, tuple[str, int]]()
    if len(paths) < len(snapshot.files):
        raise StoreError(f"{snapshot.id} lists a path twice")
    for file in snapshot.files:
        if above := next((str(up) for up in PurePosixPath(file.path).parents if str(up) in paths), None):
            raise StoreError(f"{snapshot.id} lists {above} as a file and as the folder of {file.path}")
        if blobs.setdefault(file.blob, (file.sha256, file.size)) != (file.sha256, file.size):
            raise StoreError(f"{snapshot.id} lists two contents of the blob {file.blob}")
