"""A folder as the source: a checkpoint on a USB disk, a hub cache that someone brought, or this node's own store."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import COMMIT, Entry, Snapshot, Store, StoreError, matches, wanted


class Folder:
    def __init__(self, source: dict[str, Any]) -> None:
        self.path = Path(source["path"])
        self._files: list[Path] = []

    def manifest(self, store: Store, models: list[dict[str, Any]]) -> list[Snapshot]:
        return [self._one(want) for want in models]

    def _one(self, want: dict[str, Any]) -> Snapshot:
        root, commit = self._find(want)
        names = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and ".cache" not in p.parts)
        kept = [name for name in names if wanted(name, want)]
        _complete(root, kept)
        with ThreadPoolExecutor(check.HASHERS) as pool:
            hashes = list(pool.map(lambda name: check.sha256(root / name), kept))
        files = tuple(
            Entry(name, (root / name).stat().st_size, digest, digest) for name, digest in zip(kept, hashes, strict=True)
        )
        self._files += [root / name for name in kept]
        # A plain folder knows no commit: its content names it.
        made = hashlib.sha1(json.dumps([(f.path, f.sha256) for f in files]).encode()).hexdigest()
        return Snapshot(want["id"], commit or made, files)

    def _find(self, want: dict[str, Any]) -> tuple[Path, str | None]:
        """The files' folder and their commit, where the folder tells."""
        inside = Store(self.path)
        commit = inside.commit(want["id"], want["revision"])
        if commit and inside.snapshot(want["id"], commit).is_dir():
            return inside.snapshot(want["id"], commit), commit
        if (here := inside.current(want["id"])) and inside.snapshot(want["id"], here).is_dir():
            raise StoreError(
                f"{self.path} holds {want['id']} at {here}, expected {commit}; bring that one, or take this one: "
                "model.revision of the profile, or -e model_store_accept=held where the site's lock says so"
            )
        named = want["revision"] if COMMIT.fullmatch(want["revision"] or "") else None
        for root in (self.path / want["id"].replace("/", "--"), self.path / want["id"], self.path):
            if any(matches(p.name, ["*.safetensors", "*.gguf"]) for p in root.rglob("*")) and root.is_dir():
                return root, named
        raise StoreError(
            f"{self.path} holds no weights of {want['id']}: expected its *.safetensors or *.gguf there, or a hub "
            "cache; correct model_store_import"
        )

    def fetch(self, number: int, intake: Intake) -> None:
        with self._files[number].open("rb", buffering=0) as file:
            file.seek(intake.have)
            intake.drain(file)
            check.forget(file.fileno())


def _complete(root: Path, names: list[str]) -> None:
    """A shard that the index names but nobody brought is found before anything is copied."""
    for index in (name for name in names if name.endswith(".safetensors.index.json")):
        listed = set(json.loads((root / index).read_text())["weight_map"].values())
        missing = sorted(listed - set(names))
        if missing:
            raise StoreError(
                f"{root} lacks {len(missing)} of the {len(listed)} files that its {index} names, first {missing[0]}; "
                "bring the whole checkpoint"
            )
