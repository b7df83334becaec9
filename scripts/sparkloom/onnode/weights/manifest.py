"""What a snapshot is: its files with their hashes. Whoever says so, it is judged as it is made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sparkloom.onnode.weights import names
from sparkloom.onnode.weights.names import StoreError, shown

FILES = 20_000  # of one snapshot
LARGEST = 1 << 42  # bytes of one file
FIELDS = ("path", "size", "blob", "sha256")


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

    def as_dict(self) -> dict[str, Any]:
        files = [{field: getattr(file, field) for field in FIELDS} for file in self.files]
        return {"id": self.id, "commit": self.commit, "files": files}

    def canonical(self) -> bytes:
        """The manifest as one node gives it to the next."""
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":")).encode()

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
