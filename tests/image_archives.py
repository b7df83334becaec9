"""Archives of images in the forms that docker, ctr and skopeo write, with layers of a few kilobytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OCI = "application/vnd.oci.image"
REF, NAME = "org.opencontainers.image.ref.name", "io.containerd.image.name"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar(members: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


@dataclass(frozen=True)
class Made:
    """An image: its blobs by digest, and what its name stands for."""

    blobs: dict[str, bytes]
    top: dict[str, Any]

    @property
    def digest(self) -> str:
        return str(self.top["digest"])


def image(machine: str = "amd64", content: bytes = b"x" * 5000) -> Made:
    layer = tar({f"of-{machine}": content})
    config = json.dumps(
        {
            "architecture": machine,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        }
    ).encode()
    part = {"mediaType": f"{OCI}.layer.v1.tar", "digest": digest(layer), "size": len(layer)}
    about = {"mediaType": f"{OCI}.config.v1+json", "digest": digest(config), "size": len(config)}
    kind = f"{OCI}.manifest.v1+json"
    text = json.dumps({"schemaVersion": 2, "mediaType": kind, "config": about, "layers": [part]}).encode()
    top = {"mediaType": kind, "digest": digest(text), "size": len(text)}
    return Made({digest(one): one for one in (layer, config, text)}, top)


def index(*images: Made, without: str = "") -> Made:
    """One name for several machines; the blobs of one may be left out, as `--platform` does."""
    machines = [machine_of(one) for one in images]
    entries = [
        {**one.top, "platform": {"os": "linux", "architecture": machine}}
        for one, machine in zip(images, machines, strict=True)
    ]
    kind = f"{OCI}.index.v1+json"
    text = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": entries}).encode()
    kept = [one.blobs for one, machine in zip(images, machines, strict=True) if machine != without]
    blobs = {name: data for each in kept for name, data in each.items()}
    return Made({**blobs, digest(text): text}, {"mediaType": kind, "digest": digest(text), "size": len(text)})


def machine_of(made: Made) -> str:
    manifest = json.loads(made.blobs[made.digest])
    return str(json.loads(made.blobs[manifest["config"]["digest"]])["architecture"])


def layout(**named: Made) -> bytes:
    """An OCI archive; a name with a slash is a whole one, any other a tag alone (skopeo without a name)."""
    return of([(made, {NAME if "/" in name else REF: name}) for name, made in named.items()])


def of(images: list[tuple[Made, dict[str, str]]]) -> bytes:
    entries = [{**made.top, "annotations": notes} for made, notes in images]
    blobs = {
        f"blobs/sha256/{name.removeprefix('sha256:')}": data for made, _ in images for name, data in made.blobs.items()
    }
    about = {"oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode()}
    return tar({**blobs, **about, "index.json": json.dumps({"schemaVersion": 2, "manifests": entries}).encode()})


def older(made: Made, name: str) -> bytes:
    """As docker saved before it kept digests."""
    manifest = json.loads(made.blobs[made.digest])
    config, layer = manifest["config"]["digest"], manifest["layers"][0]["digest"]
    hexes = [one.removeprefix("sha256:") for one in (config, layer)]
    listed = [{"Config": f"{hexes[0]}.json", "RepoTags": [name], "Layers": [f"{hexes[1]}/layer.tar"]}]
    parts = {f"{hexes[1]}/layer.tar": made.blobs[layer], f"{hexes[0]}.json": made.blobs[config]}
    return tar({**parts, "manifest.json": json.dumps(listed).encode()})


def keep(path: Path, data: bytes) -> Path:
    """Compressed as the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith((".gz", ".tgz")):
        data = gzip.compress(data)
    elif path.name.endswith(".zst"):
        data = subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout
    path.write_bytes(data)
    return path
