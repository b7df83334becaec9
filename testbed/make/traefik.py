"""Traefik at the version of the pinned K3s release, as an image under the name that K3s uses.

The program is built with the other Go programs (binaries); the dashboard has no pages.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.base import store
from testbed.base.steps import Say, Step, artefact
from testbed.make import binaries, images, oci
from testbed.make.traefik_source import VERSION

RECIPE = "2"  # raise to rebuild
IMAGE = f"docker.io/rancher/mirrored-library-traefik:{VERSION}"


def _inputs() -> list[store.Part]:
    return [RECIPE, *binaries.inputs(binaries.TRAEFIK), Path(oci.__file__)]


def _build(work: Path, say: Say) -> None:
    tree = images.stage(work / "tree", [(binaries.binary(binaries.TRAEFIK, "traefik"), "traefik")])
    (tree / "tmp").mkdir(mode=0o1777)
    layer = oci.pack(tree, work / "layers")
    oci.write([oci.Image([IMAGE], [layer], {"Entrypoint": ["/traefik"], "User": "65532"})], work / "traefik.tar")
    for name in ("tree", "layers"):
        store.remove_tree(work / name)


def place() -> Path:
    return store.place("traefik-image", store.key_of(_inputs()))


def archive() -> Path:
    return place() / "traefik.tar"


def definitions() -> Path:
    """Traefik's own definitions of its kinds, as its module carries them."""
    return binaries.place(binaries.TRAEFIK) / binaries.DEFINITIONS


def steps() -> list[Step]:
    title = f"packs Traefik {VERSION} as an image"
    return [replace(artefact("traefik-image", title, _inputs, _build), after=(binaries.TRAEFIK,))]
