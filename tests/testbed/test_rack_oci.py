"""Archives that containerd and docker read: right digests, shared layers, the same bytes every time."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.make import oci


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "run").write_text("#!/bin/sh\n")
    (root / "bin" / "run").chmod(0o755)
    (root / "lib").symlink_to("bin")
    (root / "bin" / "also").hardlink_to(root / "bin" / "run")
    return root


def content(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}  # type: ignore[union-attr]


def parsed(files: dict[str, bytes], digest: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files["blobs/sha256/" + digest.removeprefix("sha256:")])
    return data


def test_every_blob_is_named_by_its_digest_and_the_chain_is_whole(tree: Path, tmp_path: Path) -> None:
    digest = oci.build("localhost/a/b:1", [tree], {"Entrypoint": ["/bin/run"]}, tmp_path / "out.tar")
    files = content(tmp_path / "out.tar")
    for name, data in files.items():
        if name.startswith("blobs/"):
            assert name.rsplit("/", 1)[1] == hashlib.sha256(data).hexdigest()
    manifest = parsed(files, digest)
    config = parsed(files, manifest["config"]["digest"])
    layer = files["blobs/sha256/" + manifest["layers"][0]["digest"].removeprefix("sha256:")]
    assert manifest["layers"][0]["size"] == len(layer)
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(gzip.decompress(layer)).hexdigest()]
    assert config["config"]["Entrypoint"] == ["/bin/run"]
    assert config["config"]["Env"] == [oci.PATH_ENV]


def test_layer_holds_modes_links_and_root_as_owner(tree: Path, tmp_path: Path) -> None:
    layer = oci.pack(tree, tmp_path / "layers")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.path.read_bytes()))) as tar:
        members = {m.name: m for m in tar.getmembers()}
    assert members["bin/run"].mode & 0o777 == 0o755
    assert members["lib"].issym() and members["lib"].linkname == "bin"
    assert members["bin/also"].isreg() and members["bin/also"].size == 10
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, 0)}


def test_same_input_same_bytes(tree: Path, tmp_path: Path) -> None:
    for name in ("one.tar", "two.tar"):
        oci.build("localhost/a:1", [tree], {}, tmp_path / name)
        (tree / "bin" / "run").touch()
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_layer_of_many_images_is_stored_once(tree: Path, tmp_path: Path) -> None:
    layer = oci.pack(tree, tmp_path / "layers")
    images = [oci.Image(["localhost/a:1", "localhost/a:2"], [layer]), oci.Image(["localhost/b:1"], [layer, layer])]
    digests = oci.write(images, tmp_path / "out.tar")
    blob = "blobs/sha256/" + layer.digest.removeprefix("sha256:")
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames().count(blob) == 1
    assert digests["localhost/a:1"] == digests["localhost/a:2"] != digests["localhost/b:1"]
    assert oci.references(tmp_path / "out.tar") == digests


def test_docker_finds_its_own_manifest(tree: Path, tmp_path: Path) -> None:
    oci.build(["localhost/a:1", "localhost/a:2"], [tree], {}, tmp_path / "out.tar")
    files = content(tmp_path / "out.tar")
    (row,) = json.loads(files["manifest.json"])
    assert row["RepoTags"] == ["localhost/a:1", "localhost/a:2"]
    assert all(name in files for name in [row["Config"], *row["Layers"]])


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        oci.pack(tmp_path / "nowhere", tmp_path)


def test_packing_that_fails_leaves_nothing(tree: Path, tmp_path: Path) -> None:
    def refuse(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        oci.pack(tree, tmp_path / "layers", owner=refuse)
    assert list((tmp_path / "layers").iterdir()) == []
