"""A folder as the source: a checkpoint on a USB disk, a hub cache that someone brought, or this node's own store.

Root reads here what others wrote, and every rank may read what comes of it: so nothing from outside of the folder is
taken, whatever its links say, and nothing that is still being written.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import FILES, Entry, Snapshot, Store, matches, wanted
from sparkloom.onnode.weights.names import COMMIT, StoreError, shown

INDEX = 64 << 20  # bytes of the largest index that is read
Identity = tuple[int, int, int, int]  # device, number, size, time of change


class Folder:
    def __init__(self, source: dict[str, Any]) -> None:
        self.path = Path(source["path"])
        self._files: dict[str, tuple[Path, Path, Identity]] = {}  # by sha256: file, what it may not leave, identity

    def manifest(self, store: Store, models: list[dict[str, Any]]) -> list[Snapshot]:
        return [self._one(want) for want in models]

    def _one(self, want: dict[str, Any]) -> Snapshot:
        root, bounds, commit = self._find(want)
        names = [name for name in sorted(_names(root, bounds)) if wanted(name, want)]
        _complete(root, bounds, names)

        def entry(name: str) -> Entry:
            digest, identity = _read(root / name, bounds)
            self._files[digest] = (root / name, bounds, identity)
            return Entry(name, identity[2], digest, digest)

        with ThreadPoolExecutor(check.HASHERS) as pool:
            files = tuple(pool.map(entry, names))
        # A plain folder knows no commit: its content names it.
        made = hashlib.sha1(json.dumps([(f.path, f.sha256) for f in files]).encode()).hexdigest()
        return Snapshot(want["id"], commit or made, files)

    def _find(self, want: dict[str, Any]) -> tuple[Path, Path, str | None]:
        """The files' folder, the folder that none of them may lie outside of, and their commit where the folder tells.

        A hub cache's snapshots are links to blobs beside them: inside that model's own folder.
        """
        inside = Store(self.path)
        commit = inside.commit(want["id"], want["revision"])
        if commit and inside.snapshot(want["id"], commit).is_dir():
            return inside.snapshot(want["id"], commit), inside.repository(want["id"]), commit
        if (here := inside.current(want["id"])) and inside.snapshot(want["id"], here).is_dir():
            raise StoreError(
                f"{self.path} holds {want['id']} at {here}, expected {commit}; bring that one, or take this one: "
                "model.revision of the profile, or -e model_store_accept=held where the site's lock says so"
            )
        named = want["revision"] if COMMIT.fullmatch(want["revision"] or "") else None
        for root in (self.path / want["id"].replace("/", "--"), self.path / want["id"], self.path):
            if any(matches(p.name, ["*.safetensors", "*.gguf"]) for p in root.rglob("*")) and root.is_dir():
                cached = root.parent.name == "snapshots" and root.parent.parent.name.startswith("models--")
                return root, root.parent.parent if cached else root, named
        raise StoreError(
            f"{self.path} holds no weights of {want['id']}: expected its *.safetensors or *.gguf there, or a hub "
            "cache; correct model_store_import"
        )

    def fetch(self, intake: Intake) -> None:
        path, bounds, identity = self._files[intake.entry.sha256]
        descriptor = _opened(path, bounds)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if _identity(descriptor) != identity:
                raise _changed(path)
            file.seek(intake.have)
            intake.drain(file.readinto)
            check.forget(descriptor)
            if _identity(descriptor) != identity:
                raise _changed(path)


def _names(root: Path, bounds: Path) -> Iterator[str]:
    """Every file, without those that tools keep beside a checkpoint."""
    count = 0
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in {".cache", ".git"}]
        for name in folders:
            if (path := Path(place, name)).is_symlink():
                _within(path, path.resolve(), bounds)
        for name in names:
            count += 1
            if count > FILES:
                raise StoreError(f"{root} holds more than {FILES} files; name the checkpoint's own folder")
            yield str(Path(place, name).relative_to(root))


def _within(path: Path, real: Path, bounds: Path) -> None:
    if not real.is_relative_to(bounds.resolve()):
        raise StoreError(
            f"{shown(path)} leads to {shown(real)}, outside of {bounds}: what lies there is not imported; put the file "
            "itself in its place, or take the link away"
        )


def _opened(path: Path, bounds: Path) -> int:
    """A descriptor of what the path leads to now; judged by what was opened, not by what may lie there later."""
    try:
        _within(path, path.resolve(), bounds)
        _regular(path, path.stat())
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{shown(path)} cannot be read: {error.strerror}; mend or remove it") from None
    try:
        _within(path, Path(f"/proc/self/fd/{descriptor}").readlink(), bounds)
        _regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _regular(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise StoreError(f"{shown(path)} is no file but a device, a pipe or a folder; remove it")


def _identity(descriptor: int) -> Identity:
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _read(path: Path, bounds: Path) -> tuple[str, Identity]:
    """Its sha256, and what tells later whether it is still the same."""
    descriptor = _opened(path, bounds)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        before = _identity(descriptor)
        digest = check.hashed(file)
        if _identity(descriptor) != before:
            raise _changed(path)
        return digest, before


def _changed(path: Path) -> StoreError:
    return StoreError(f"{shown(path)} changes while it is read; wait until nobody writes there, then run this again")


def _complete(root: Path, bounds: Path, names: list[str]) -> None:
    """A shard that the index names but nobody brought is found before anything is copied."""
    for index in (name for name in names if name.endswith(".safetensors.index.json")):
        with os.fdopen(_opened(root / index, bounds), "rb") as file:
            text = file.read(INDEX + 1)
        try:
            listed = {str(name) for name in json.loads(text)["weight_map"].values()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StoreError(f"{root / index} is no index: expected a weight_map; bring the checkpoint anew") from None
        missing = sorted(listed - set(names))
        if missing:
            raise StoreError(
                f"{root} lacks {len(missing)} of the {len(listed)} files that its {index} names, first "
                f"{shown(missing[0])}; bring the whole checkpoint"
            )
