"""What the hub keeps on disk: per model its commits, its branches, each file with the hashes git knows it by."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sparkloom.inputs.profile import Model
from sparkloom.onnode.weights.names import COMMIT
from testbed.standins.hub import weights

LARGE = (".safetensors", ".gguf", ".bin")  # what a real repository keeps in LFS
BLOCK = 1 << 20


@dataclass(frozen=True)
class File:
    path: str
    size: int
    oid: str  # git's blob id; of the pointer for LFS
    sha256: str | None  # LFS only: the real hub tells it for no other file
    pointer_size: int = 0


@dataclass
class Repository:
    id: str
    root: Path
    gated: bool = False
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, list[File]] = field(default_factory=dict)

    def commit(self, revision: str) -> str | None:
        """A branch or a commit; a commit may be shortened to seven digits, as on the hub."""
        if revision in self.branches:
            return self.branches[revision]
        matching = [commit for commit in self.commits if len(revision) >= 7 and commit.startswith(revision)]
        return matching[0] if len(matching) == 1 else None

    def file(self, commit: str, path: str) -> File | None:
        return next((file for file in self.commits[commit] if file.path == path), None)

    def location(self, commit: str, path: str) -> Path:
        return self.root / commit / path

    def save(self) -> None:
        data = {
            "id": self.id,
            "gated": self.gated,
            "branches": self.branches,
            "commits": {commit: [asdict(file) for file in files] for commit, files in self.commits.items()},
        }
        scratch = self.root / ".repository.json"
        scratch.write_text(json.dumps(data, indent=1))
        scratch.replace(self.root / "repository.json")


def folder(data: Path, model_id: str) -> Path:
    return data / model_id.replace("/", "--")


def load(root: Path) -> Repository:
    data = json.loads((root / "repository.json").read_text())
    commits = {commit: [File(**file) for file in files] for commit, files in data["commits"].items()}
    return Repository(data["id"], root, data["gated"], data["branches"], commits)


def every(data: Path) -> dict[str, Repository]:
    loaded = (load(path.parent) for path in sorted(data.glob("*/repository.json")))
    return {repository.id: repository for repository in loaded}


def make(data: Path, model: Model, shape: weights.Shape, *, branch: str = "main", gated: bool = False) -> Repository:
    """A new commit of a model's repository, made of generated weights; the same seed gives the same commit."""
    root = folder(data, model.id)
    root.mkdir(parents=True, exist_ok=True)
    known = (root / "repository.json").exists()
    repository = load(root) if known else Repository(model.id, root)
    scratch = root / ".making"
    shutil.rmtree(scratch, ignore_errors=True)
    weights.write(scratch, model, shape)
    files = [describe(scratch, path) for path in sorted(scratch.rglob("*")) if path.is_file()]
    made = hashlib.sha1(json.dumps([asdict(file) for file in files]).encode()).hexdigest()
    # What a profile pins is the first commit there is; as on the hub, another content is another commit.
    pinned = model.revision if COMMIT.fullmatch(model.revision or "") else None
    commit = pinned if pinned and pinned not in repository.commits else made
    if pinned and repository.commits.get(pinned) == files:
        commit = pinned
    if not (root / commit).exists():
        scratch.replace(root / commit)
    shutil.rmtree(scratch, ignore_errors=True)
    repository.commits[commit], repository.branches[branch], repository.gated = files, commit, gated
    repository.save()
    return repository


def describe(root: Path, path: Path) -> File:
    size, sha256, blob = path.stat().st_size, hashlib.sha256(), hashlib.sha1(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while piece := file.read(BLOCK):
            sha256.update(piece)
            blob.update(piece)
    name = str(path.relative_to(root))
    if path.suffix not in LARGE:
        return File(name, size, blob.hexdigest(), None)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256.hexdigest()}\nsize {size}\n".encode()
    oid = hashlib.sha1(f"blob {len(pointer)}\0".encode() + pointer).hexdigest()
    return File(name, size, oid, sha256.hexdigest(), len(pointer))
