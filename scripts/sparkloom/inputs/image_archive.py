"""Archives of images as docker, ctr and skopeo write them: which images are in one, by which digest, for whom.

Only manifests are read; layers are passed over, so that an engine's 20 GB take no memory. A manifest that is not what
its digest says is refused here; a layer that is not, by containerd when it imports the archive.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.onnode.images import reference

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
LARGEST = 4_000_000  # bytes of a manifest or a configuration; layers are larger, or no JSON
BLOBS = "blobs/sha256/"
CALLED = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
NO_FORM = (LookupError, TypeError, AttributeError, ValueError, RecursionError)  # of what others wrote


@dataclass(frozen=True, slots=True)
class Image:
    names: tuple[str, ...]  # as containerd keeps them; none where the archive has only a tag
    digest: str  # of what a tag means, an index or a manifest; empty in an older Docker's archive
    machines: tuple[str, ...]  # amd64, arm64: those for which every layer is in the archive


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an archive holds: small JSON members, and the names of all."""

    read: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def blob(self, digest: str) -> Any:
        return self.read.get(BLOBS + digest.removeprefix("sha256:"), {})

    def has(self, digest: str) -> bool:
        return BLOBS + digest.removeprefix("sha256:") in self.names


def read(path: Path) -> list[Image]:
    """Every image in it; refuses by name what is no whole archive."""
    parts = _Parts()
    try:
        with _opened(path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                parts.names.add(name)
                stream = archive.extractfile(member) if member.isreg() and member.size <= LARGEST else None
                _keep(path, parts, name, stream.read() if stream else b"")
        if index := parts.read.get("index.json"):
            return [_described(parts, entry) for entry in index.get("manifests", [])]
        if "manifest.json" in parts.read:
            return [_older(parts, entry) for entry in parts.read["manifest.json"]]
    except (tarfile.TarError, EOFError, OSError, *NO_FORM) as error:
        raise _refused(path, f"no whole archive of images ({error}); copy it again, or save it anew") from None
    raise _refused(path, "no archive of images: it has neither index.json nor manifest.json; remove it from there")


def _refused(path: Path, message: str) -> InputError:
    return InputError.single(str(path), message, rule="image-archive")


def _keep(path: Path, parts: _Parts, name: str, data: bytes) -> None:
    if not data.startswith((b"{", b"[")):
        return
    digest = name.removeprefix(BLOBS)
    if digest != name and hashlib.sha256(data).hexdigest() != digest:
        raise _refused(path, f"{name} is not what its name says; copy the archive again, or save it anew")
    try:
        parts.read[name] = json.loads(data)
    except ValueError:
        return  # a layer that begins like one


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    if not path.name.endswith(".zst"):
        with tarfile.open(path, "r:" if path.name.endswith(".tar") else "r|gz") as archive:
            yield archive
        return
    if not shutil.which("zstd"):
        raise _refused(path, f"there is no zstd here to read it; install zstd, or unpack it elsewhere: zstd -d {path}")
    with subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
            yield archive
        if unpacked.stdout:
            while unpacked.stdout.read(1 << 20):  # what stands behind a tar's end
                pass
        if unpacked.wait():
            raise tarfile.ReadError("zstd cannot unpack it")


def _described(parts: _Parts, entry: Mapping[str, Any]) -> Image:
    notes = entry.get("annotations") or {}
    given = (notes[key] for key in CALLED if key in notes)
    whole = (name.partition("@")[0] for name in given)
    names = dict.fromkeys(reference.parse(name).tagged for name in whole if ":" in name.rpartition("/")[2])
    return Image(tuple(names), str(entry["digest"]), tuple(dict.fromkeys(_machines(parts, str(entry["digest"])))))


def _machines(parts: _Parts, digest: str) -> Iterator[str]:
    manifest = parts.blob(digest)
    for inner in manifest.get("manifests", []):
        yield from _machines(parts, str(inner["digest"]))
    if "layers" in manifest and all(parts.has(str(layer["digest"])) for layer in manifest["layers"]):
        yield from _machine(parts.blob(str(manifest["config"]["digest"])))


def _machine(config: Mapping[str, Any]) -> Iterator[str]:
    """A build's attestations are listed like images, for the machine `unknown`."""
    if config.get("architecture", "unknown") != "unknown":
        yield str(config["architecture"])


def _older(parts: _Parts, entry: Mapping[str, Any]) -> Image:
    """Docker's before it kept a registry's digests: names and layers alone."""
    names = tuple(reference.parse(name).tagged for name in entry.get("RepoTags") or [])
    whole = all(layer in parts.names for layer in entry["Layers"])
    return Image(names, "", tuple(_machine(parts.read.get(entry["Config"], {}))) if whole else ())
