"""The program that pulls and names images on a node, against a real containerd and a registry on loopback.

The containerd is this test's own: a folder of its own, no network, no container is run. Without one, or without root,
only what needs neither is tested.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.images import main, pull, reference
from sparkloom.onnode.images.runtime import ImageError, Runtime
from tests.onnode.images.registry import Registry
from tests.until import until

Place = dict[str, str]
REAL = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("containerd") or not shutil.which("ctr"), reason="needs containerd and root"
)
CONFIG = """version = 2
root = "{0}/root"
state = "{0}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{0}/socket"
[ttrpc]
address = "{0}/ttrpc"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("ctd")
    (folder / "config.toml").write_text(CONFIG.format(folder))
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["containerd", "-c", str(folder / "config.toml")], stdout=log, stderr=log)
    until(lambda: (folder / "socket").exists() and not subprocess.run(
        ["ctr", "-a", str(folder / "socket"), "version"], capture_output=True
    ).returncode, 60)  # fmt: skip
    yield {"socket": str(folder / "socket"), "root": str(folder / "root")}
    daemon.terminate()
    daemon.wait(20)


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    made.end()


def pulled(runtime: Runtime, image: str, folder: Path) -> list[dict[str, Any]]:
    """Every status until the end."""
    one = pull.Pull(runtime, image, folder)
    told = [one.start()]
    until(lambda: told.append(one.status()) or told[-1]["state"] in ("done", "failed"), 60)
    return told


@REAL
def test_a_pull_is_followed_in_bytes_and_held_by_its_digest(place: Place, registry: Registry, tmp_path: Path) -> None:
    runtime = Runtime.here([{"socket": "/nowhere", "root": "/"}, place])
    assert main.look(runtime, registry.image) == {"tag": "", "digests": []}
    registry.gate.clear()
    one = pull.Pull(runtime, registry.image, tmp_path)
    one.start()
    half = until(lambda: told if (told := one.status())["files_done"] else None, 60)
    assert half["state"] == "moving" and 0 < half["have"] < half["total"] and half["files"] == 2
    process = (one.folder / "pid").read_text()
    assert pull.Pull(runtime, registry.image, tmp_path).start()["state"] == "moving", "a second run finds it at work"
    assert (one.folder / "pid").read_text() == process
    registry.gate.set()
    last = until(lambda: told if (told := one.status())["state"] in ("done", "failed") else None, 60)
    assert last["state"] == "done", last
    assert last["have"] == last["total"] > 2 * registry.size and last["files_done"] == 2
    tag = main.look(runtime, registry.image)["tag"]
    assert tag == registry.manifest
    by_digest = reference.parse(registry.image).at(tag)
    assert main.hold(runtime, registry.image, tag, retag=False) == {"changed": [by_digest]}
    assert main.hold(runtime, registry.image, tag, retag=True) == {"changed": []}
    labelled = runtime.run("images", "ls", f"name=={json.dumps(by_digest)}")
    assert "io.cri-containerd.pinned=pinned" in labelled, "the kubelet's tidying of a full disk takes it away"


@REAL
def test_an_image_that_no_group_has_is_the_kubelets_again(place: Place, registry: Registry, tmp_path: Path) -> None:
    """Every engine that ever served here was pinned for good, and a disk that filled lost none of them."""
    runtime, name, first = Runtime.here([place]), reference.parse(registry.image), registry.manifest
    assert pulled(runtime, registry.image, tmp_path)[-1]["state"] == "done"
    main.hold(runtime, registry.image, first, retag=False, serves=True)
    second = registry.push()
    assert pulled(runtime, registry.image, tmp_path)[-1]["state"] == "done"
    main.hold(runtime, registry.image, second, retag=False)  # of an archive, or built here
    main.hold(runtime, registry.image, second, retag=False, serves=True)

    def released(*images: str) -> list[str]:
        told = main.COMMANDS["release"]({"places": [place], "images": list(images)})["changed"]
        return [one for one in told if one.startswith(name.name)]

    def pinned() -> set[str]:
        return {one for one in runtime.labelled("io.cri-containerd.pinned=pinned") if one.startswith(f"{name.name}@")}

    assert released(name.at(first), name.at(second)) == [] and len(pinned()) == 2
    assert released(name.at(second)) == [name.at(first)] and pinned() == {name.at(second)}
    assert released() == [] and pinned() == {name.at(second)}, "what could not be had again stays"
    main.hold(runtime, registry.image, first, retag=False, serves=True)
    assert len(pinned()) == 2 and main.COMMANDS["release"]({"places": [], "images": []}) == {"changed": []}


@REAL
def test_a_moved_tag_is_seen_and_the_digest_of_before_stays(place: Place, registry: Registry, tmp_path: Path) -> None:
    runtime, first = Runtime.here([place]), registry.manifest
    assert pulled(runtime, registry.image, tmp_path)[-1]["state"] == "done"
    main.hold(runtime, registry.image, first, retag=False)
    second = registry.push()
    assert pulled(runtime, registry.image, tmp_path)[-1]["state"] == "done"
    assert main.look(runtime, registry.image) == {"tag": second, "digests": sorted([first, second])}
    main.hold(runtime, registry.image, first, retag=True)
    assert main.look(runtime, registry.image)["tag"] == first


@REAL
def test_what_cannot_be_pulled_says_the_registry_s_words(place: Place, registry: Registry, tmp_path: Path) -> None:
    runtime, missing = Runtime.here([place]), registry.image.replace("an_engine:1.0-x", "other@sha256:" + "0" * 64)
    told = pulled(runtime, missing, tmp_path)[-1]
    assert told["state"] == "failed" and "not found" in told["cause"]
    with pytest.raises(ImageError, match="is not here"):
        main.hold(runtime, registry.image, "sha256:" + "0" * 64, retag=False)


def test_a_node_without_containerd_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = json.dumps({"places": [{"socket": "/nowhere/a.sock", "root": "/"}], "image": "x"})
    monkeypatch.setattr("sys.stdin.read", lambda: asked, raising=False)
    monkeypatch.setattr(json, "load", lambda stream: json.loads(asked))
    assert main.main(["look"]) == 1
    assert "no containerd answers here (/nowhere/a.sock)" in json.loads(capsys.readouterr().out)["error"]


def test_the_runtime_of_the_kubelet_is_asked_as_the_kubelet_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "socket"
    socket.touch()
    program = tmp_path / "k3s"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    runtime = Runtime.here([{"socket": str(socket), "program": str(program), "root": "/r"}])
    assert runtime.ctr[:4] == (str(program), "ctr", "--address", str(socket))
    words = runtime.pulling("docker.io/a/b:1")
    assert words[:2] == [str(program), "crictl"] and words[-2:] == ["pull", "docker.io/a/b:1"]


@pytest.mark.parametrize(
    ("text", "name", "tag", "digest"),
    [
        ("scitrera/dgx-spark-sglang:0.5.12", "docker.io/scitrera/dgx-spark-sglang", "0.5.12", ""),
        ("ubuntu", "docker.io/library/ubuntu", "latest", ""),
        ("localhost/x:1", "localhost/x", "1", ""),
        ("registry:5000/x", "registry:5000/x", "latest", ""),
        ("ghcr.io/a/b:1@sha256:0", "ghcr.io/a/b", "1", "sha256:0"),
    ],
)
def test_a_name_as_containerd_keeps_it(text: str, name: str, tag: str, digest: str) -> None:
    assert reference.parse(text) == (name, tag, digest)


def test_progress_counts_layers_that_were_there_and_passes_over_what_is_no_manifest(tmp_path: Path) -> None:
    blobs, ingest = tmp_path / "blobs/sha256", tmp_path / "ingest/one"
    blobs.mkdir(parents=True), ingest.mkdir(parents=True)
    layers = [{"digest": f"sha256:{name}", "size": 1000} for name in "abc"]
    (blobs / "manifest").write_text(json.dumps({"layers": layers}))
    (blobs / "config").write_text(json.dumps(["layers"]))
    (blobs / "a").write_bytes(b"x" * 1000)
    (ingest / "ref").write_text("k8s.io/3/layer-sha256:b")
    (ingest / "data").write_bytes(b"x" * 400)
    assert pull.progress(tmp_path, 0) == pull.Progress(1400, 3000, 1, 3)
    assert pull.progress(tmp_path, time.time() + 60) == pull.Progress(), "an older image is not this one"
