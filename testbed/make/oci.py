"""OCI images in plain Python: layers from folders, many images in one archive, no registry, no daemon.

    oci.build("localhost/me/engine:1", layers=[base_tree, my_tree], config={"Entrypoint": ["/run"]}, out="engine.tar")

The archive is an OCI layout (for `ctr images import`) with a manifest.json for `docker load`. The same input
gives the same bytes. Layers are shared: a folder packed once (`pack`) can be given to many images, and is stored once.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

PATH_ENV = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EPOCH = "1970-01-01T00:00:00Z"

Owner = Callable[[tarfile.TarInfo], tarfile.TarInfo]


@dataclass(frozen=True)
class Layer:
    """One packed layer: a gzip file, its digest, and the digest of the tar inside it."""

    path: Path
    digest: str
    diff_id: str
    size: int


@dataclass(frozen=True)
class Image:
    """What an archive is made of; `names` are full references (all of them point to the same image)."""

    names: Sequence[str]
    layers: Sequence[Layer]
    config: Mapping[str, Any] = field(default_factory=dict)


class _Hashing(io.RawIOBase):
    """Passes what is written on, and hashes it."""

    def __init__(self, sink: IO[bytes]) -> None:
        self.sink, self.sha, self.size = sink, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha.update(data)
        self.size += len(data)
        self.sink.write(data)
        return len(data)

    @property
    def digest(self) -> str:
        return f"sha256:{self.sha.hexdigest()}"


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's, and of no date: the same tree packs to the same bytes on every machine."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def pack(tree: Path | str, folder: Path | str, *, owner: Owner = _anonymous, compiled: bool = False) -> Layer:
    """Pack a folder's content as a layer file in `folder`, named by its digest; Python's compiled files if asked."""
    tree, folder = Path(tree), Path(folder)
    if not tree.is_dir():
        raise FileNotFoundError(f"expected a folder for a layer, found none at {tree}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".layer-", delete=False) as file:
        try:
            packed = _Hashing(file)
            with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0, filename="") as zipped:
                raw = _Hashing(cast(IO[bytes], zipped))
                with tarfile.open(fileobj=raw, mode="w|", format=tarfile.GNU_FORMAT, bufsize=1 << 20) as tar:
                    _add_tree(tar, tree, owner, () if compiled else ("__pycache__",))
            target = folder / f"{packed.sha.hexdigest()}.tar.gz"
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return Layer(target, packed.digest, raw.digest, packed.size)


def keep(folder: Path, layers: Mapping[str, Layer]) -> None:
    """Names for the layers that were packed into this folder, for `kept`."""
    index = {name: [layer.path.name, layer.digest, layer.diff_id, layer.size] for name, layer in layers.items()}
    (folder / "index.json").write_text(json.dumps(index))


def kept(folder: Path) -> dict[str, Layer]:
    index = json.loads((folder / "index.json").read_text())
    return {name: Layer(folder / file, *rest) for name, (file, *rest) in index.items()}


def _add_tree(tar: tarfile.TarFile, tree: Path, owner: Owner, without: Sequence[str]) -> None:
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in without)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in sorted([*files, *folders]):
            path = Path(folder, name)
            entry = owner(tar.gettarinfo(path, path.relative_to(tree).as_posix()))
            if entry.islnk():  # store a second name of a file as a file: order must not matter
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
        folders[:] = [name for name in folders if name not in links]


def write(images: Iterable[Image], out: Path | str, *, architecture: str | None = None) -> dict[str, str]:
    """Write one archive of many images; returns {reference: manifest digest}."""
    out = Path(out)
    arch = architecture or ARCHITECTURES.get(platform.machine(), platform.machine())
    blobs: dict[str, bytes | Path] = {}
    index: list[dict[str, Any]] = []
    legacy: list[dict[str, Any]] = []
    digests: dict[str, str] = {}
    for image in images:
        config = _blob(blobs, _config(image, arch))
        layers = [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in image.layers]
        blobs.update({layer.digest: layer.path for layer in image.layers})
        body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, **config}, "layers": layers}
        manifest = _blob(blobs, body)
        for name in image.names:
            notes = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[-1]}
            place = {"architecture": arch, "os": "linux"}
            index.append({"mediaType": MANIFEST, **manifest, "platform": place, "annotations": notes})
            digests[name] = manifest["digest"]
        paths = [_blob_path(layer.digest) for layer in image.layers]
        legacy.append({"Config": _blob_path(config["digest"]), "RepoTags": list(image.names), "Layers": paths})
    aside = out.with_name(f".{out.name}.{os.getpid()}")
    aside.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(aside, "w", format=tarfile.GNU_FORMAT) as tar:
        _add_bytes(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add_bytes(tar, "index.json", _dump({"schemaVersion": 2, "manifests": index}))
        _add_bytes(tar, "manifest.json", _dump(legacy))
        for digest, content in sorted(blobs.items()):
            if isinstance(content, bytes):
                _add_bytes(tar, _blob_path(digest), content)
            else:
                _add_file(tar, _blob_path(digest), content)
    aside.replace(out)
    return digests


def build(
    name: str | Sequence[str],
    layers: Sequence[Path | str | Layer],
    config: Mapping[str, Any] | None = None,
    out: Path | str = "image.tar",
    *,
    scratch: Path | str | None = None,
) -> str:
    """One image from folders (lowest first) or packed layers; returns its manifest digest.

    `config` holds OCI config keys: Entrypoint, Cmd, Env (list), WorkingDir, User, ExposedPorts, Labels, StopSignal.
    """
    names = [name] if isinstance(name, str) else list(name)
    with tempfile.TemporaryDirectory(dir=scratch or Path(out).resolve().parent) as folder:
        packed = [layer if isinstance(layer, Layer) else pack(layer, folder) for layer in layers]
        return write([Image(names, packed, config or {})], out)[names[0]]


def references(archive: Path | str) -> dict[str, str]:
    """{reference: manifest digest} of an archive that has an OCI index; {reference: ""} of an older docker archive."""
    with tarfile.open(archive) as tar:
        inside = set(tar.getnames())
        if "index.json" in inside:
            manifests = json.loads(_read(tar, "index.json"))["manifests"]
            return {m["annotations"]["io.containerd.image.name"]: m["digest"] for m in manifests if "annotations" in m}
        rows = json.loads(_read(tar, "manifest.json"))
        return {tag: "" for row in rows for tag in row["RepoTags"] or []}


def _config(image: Image, arch: str) -> dict[str, Any]:
    settings = dict(image.config)
    if not any(str(e).startswith("PATH=") for e in settings.get("Env", [])):
        settings["Env"] = [PATH_ENV, *settings.get("Env", [])]
    return {
        "architecture": arch,
        "os": "linux",
        "created": EPOCH,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
    }


def _dump(data: object) -> bytes:
    return json.dumps(data, sort_keys=True).encode()


def _blob(blobs: dict[str, bytes | Path], data: object) -> dict[str, Any]:
    raw = _dump(data)
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    blobs[digest] = raw
    return {"digest": digest, "size": len(raw)}


def _blob_path(digest: str) -> str:
    return "blobs/sha256/" + digest.removeprefix("sha256:")


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = path.stat().st_size, 0o644
    with path.open("rb") as content:
        tar.addfile(entry, content)


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    if member is None:
        raise FileNotFoundError(f"{name} is no file in {tar.name!r}")
    return member.read()
