"""Archives that are brought to a node: the controller's part and the node's, against a real containerd.

The node is this machine: what Ansible would run there is run by a shell here, in a folder of the test's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.images import main, pull
from sparkloom.onnode.images.runtime import ImageError, Runtime
from sparkloom.onnode.weights.names import StoreError
from sparkloom.render import pack
from sparkloom.site import image_archives, image_transfer
from sparkloom.site.image_archives import Need
from sparkloom.site.store import remote
from tests import image_archives as made
from tests.onnode.images.test_images import REAL, Place, place

__all__ = ["place"]
NAME = "ghcr.io/some-org/multus:v4"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[
    subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip()
]
OTHER = "arm64" if MACHINE == "amd64" else "amd64"


class Node:
    """Runs the lines that go to a node; `cut` ends the connection after so many."""

    def __init__(self, place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(remote, "PLACE", str(folder / "programs"))
        monkeypatch.setattr(image_transfer.paths, "ARCHIVES", str(folder / "staging"))
        self.place, self.folder, self.lines = place, folder, list[str]()
        self.said: list[str] = []
        self.cut = 10_000
        self.remote = remote.Remote("spark1", self.execute, pack.program("images").keep(folder / "built"))

    def execute(self, line: str, data: bytes | None) -> Mapping[str, Any]:
        self.lines.append(line)
        if sum("cat >>" in one for one in self.lines) > self.cut:
            raise ConnectionError("the cable")
        ran = subprocess.run(["sh", "-c", line], input=data or b"", capture_output=True)
        return {"rc": ran.returncode, "stdout": ran.stdout.decode(), "stderr": ran.stderr.decode()}

    def held(self, *images: str) -> dict[str, Any]:
        return dict(self.remote.ask("held", {"places": [self.place], "images": list(images)})["images"])

    def missing(self, *needs: Need) -> list[dict[str, Any]]:
        """What is decided to be brought, from the folder `images`."""
        lacking = image_archives.lacking(needs, {"spark1": self.held(*(need.image for need in needs))})
        rows, brought = image_archives.decide(self.folder / "images", lacking, {"spark1": MACHINE})
        assert rows == []
        return brought.get("spark1", [])

    def bring(self, one: Mapping[str, Any]) -> str:
        return image_transfer.Transfer(self.remote, [self.place], 60, self.said.append).bring(one)


@pytest.fixture
def node(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(place, tmp_path, monkeypatch)


def need(one: made.Made, name: str = NAME) -> Need:
    return Need(f"{name}@{one.digest}", one.digest, ("spark1",), "multus_image")


def rows(place: Place, *filters: str) -> dict[str, str]:
    return Runtime.here([place]).digests(*filters)


@REAL
@pytest.mark.parametrize(
    ("suffix", "form"), [(".tar", "ctr"), (".tar.gz", "skopeo"), (".tar", "a tag alone"), (".tar.zst", "ctr")]
)
def test_a_pinned_image_is_imported_and_can_be_named_as_pods_name_it(
    node: Node, place: Place, suffix: str, form: str
) -> None:
    if suffix == ".tar.zst" and not shutil.which("zstd"):
        pytest.skip("needs zstd")
    image = made.index(made.image(MACHINE, f"{suffix}{form}".encode()), made.image(OTHER), without=OTHER)
    notes = {"ctr": {made.NAME: NAME, made.REF: "v4"}, "skopeo": {made.REF: NAME}, "a tag alone": {made.REF: "v4"}}
    made.keep(node.folder / f"images/a{suffix}", made.of([(image, notes[form])]))
    (one,) = node.missing(need(image))
    told = node.bring(one)
    assert told.startswith(f"spark1: {NAME} from a{suffix}, ")
    by_digest = f"ghcr.io/some-org/multus@{image.digest}"
    assert rows(place)[by_digest] == rows(place)[NAME] == image.digest
    assert rows(place, 'name~="^import-"') == {}, "names that ctr made up go"
    labelled = Runtime.here([place]).run("images", "ls", f"name=={by_digest}")
    assert "io.cri-containerd.pinned=pinned" in labelled, "the kubelet must not tidy it away"
    assert list((node.folder / "staging").iterdir()) == []
    sent = len(node.lines)
    assert node.missing(need(image)) == [] and len(node.lines) == sent + 1, "a second run asks once and brings nothing"


@REAL
def test_an_engine_by_its_tag_comes_out_of_an_older_docker_s_archive(node: Node, place: Place) -> None:
    image = made.image(MACHINE, b"an engine")
    made.keep(node.folder / "images/e.tar", made.older(image, "some-org/an_engine:2"))
    wanted = Need("some-org/an_engine:2", "", ("spark1",), "profile x")
    (one,) = node.missing(wanted)
    node.bring(one)
    found = node.held(wanted.image)[wanted.image]
    assert found["tag"] and f"docker.io/some-org/an_engine@{found['tag']}" in rows(place)
    assert node.missing(wanted) == []


@REAL
def test_a_transfer_that_was_cut_off_goes_on_where_it_ended(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_transfer, "PIECE", 4000)
    image = made.image(MACHINE, b"y" * 20_000)
    made.keep(node.folder / "images/a.tar", made.layout(**{NAME: image}))
    (one,) = node.missing(need(image))
    node.cut = 3
    with pytest.raises(ConnectionError):
        node.bring(one)
    (part,) = (node.folder / "staging").iterdir()
    assert part.stat().st_size == 12_000 and part.stat().st_mode & 0o777 == 0o600
    node.cut, before = 10_000, len(node.lines)
    node.bring(one)
    again = sum("cat >>" in line for line in node.lines[before:])
    assert again == -(-(one["size"] - 12_000) // 4000), "no byte twice"
    assert node.missing(need(image)) == []


@REAL
def test_a_layer_that_is_not_what_its_digest_says_is_refused_by_containerd(node: Node) -> None:
    """Containerd keeps the name of what it could not import whole; a good archive is brought all the same."""
    image = made.image(MACHINE, b"z" * 3000)
    layer = json.loads(image.blobs[image.digest])["layers"][0]["digest"]
    forged = made.Made({**image.blobs, layer: image.blobs[layer].replace(b"zzz", b"yyy")}, image.top)
    made.keep(node.folder / "images/a.tar", made.layout(**{NAME: forged}))
    (one,) = node.missing(need(image))
    with pytest.raises(StoreError, match=r"spark1: .*a\.tar cannot be imported: "):
        node.bring(one)
    assert node.missing(need(image)), "it is not held to be there"
    made.keep(node.folder / "images/a.tar", made.layout(**{NAME: image}))
    node.bring(node.missing(need(image))[0])
    assert node.missing(need(image)) == []


def test_a_machine_that_never_ran_holds_nothing() -> None:
    """Red before: `look` ended the run on a bare machine, where no containerd answers yet."""
    assert main.held({"places": [{"socket": "/nowhere/a.sock", "root": "/"}], "images": ["x"]})["images"] == {}


def test_too_little_room_is_said_before_a_byte_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=30_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ImageError, match=r"has 30.0 GB free, engine.tar needs 60.0 GB"):
        pull.begun(tmp_path / "engine.tar", 20_000_000_000)


def test_a_large_archive_is_sent_in_pieces_and_says_how_far_it_is(tmp_path: Path) -> None:
    file, size = tmp_path / "e.tar", 200 << 20
    with file.open("wb") as sparse:
        sparse.truncate(size)
    pieces: list[int] = []
    said: list[str] = []

    def execute(line: str, data: bytes | None) -> Mapping[str, Any]:
        if "cat >>" in line:
            pieces.append(len(data or b""))
        answers = {"receive": {"have": 0}, "importing": {"state": "done"}}
        told = next((answer for word, answer in answers.items() if line.endswith(f" {word}")), {})
        return {"rc": 0, "stdout": json.dumps({"answer": told}), "stderr": ""}

    told = remote.Remote("spark1", execute, tmp_path / "images-0.pyz")
    now = iterator(0.0, 3.0)
    one = {"file": str(file), "size": size, "when": 1, "images": [{"image": "org/engine:1", "digest": ""}]}
    text = image_transfer.Transfer(told, [], 60, said.append, now).bring(one)
    assert sum(pieces) == size and max(pieces) == image_transfer.PIECE
    assert said[0].startswith("spark1  [#####...........]  67.1 MB of 209.7 MB") and "left" in said[0]
    assert text.startswith("spark1: org/engine:1 from e.tar, 209.7 MB in ")


def iterator(value: float, step: float) -> Callable[[], float]:
    """A clock that goes on by so much at every look."""
    held = [value]

    def now() -> float:
        held[0] += step
        return held[0]

    return now
