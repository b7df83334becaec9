"""Prometheus, promtool and the node-exporter themselves, from Debian's packages; images of the names that sites pin.

The releases are of the pinned series (3.5) and the nearest that the suite has (node-exporter 1.11 for 1.9).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.base import names, store
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs
from testbed.make.real import debian

RECIPE = "1"  # raise to rebuild
SUITE = "forky"
PINS = Path(__file__).parent / "prometheus_programs/packages.txt"
KEPT = ("prometheus", "promtool", "prometheus-node-exporter")
IMAGES = names.REPO / "inventories/kind/group_vars/sparks.yml"  # what the rack calls them
NOBODY = "65534"


def _inputs() -> list[store.Part]:
    return [RECIPE, SUITE, *KEPT, PINS, Path(debian.__file__)]


def _build(work: Path, say: Say) -> None:
    say("Debian's packages of Prometheus, promtool and the node-exporter")
    tree, scratch = work / "tree", work / "scratch"
    scratch.mkdir()
    debian.unpack(SUITE, PINS, tree, scratch, say)
    (work / "bin").mkdir()
    for name in KEPT:
        shutil.move(tree / "usr/bin" / name, work / "bin" / name)
    store.remove_tree(tree)
    store.remove_tree(scratch)


def place() -> Path:
    return store.place("prometheus", store.key_of(_inputs()))


def program(name: str) -> Path:
    return place() / "bin" / name


@dataclass(frozen=True)
class Packed:
    """An image with one of the programs, under the name by which a rack asks for it."""

    name: str
    variable: str
    program: str
    inside: str

    def inputs(self) -> list[store.Part]:
        return [*_inputs(), *rootfs.base_inputs(), Path(oci.__file__), IMAGES]

    def build(self, work: Path, say: Say) -> None:
        """Over the base of all pods: the program wants a C library."""
        tree = work / self.inside
        (tree / "bin").mkdir(parents=True)
        shutil.copy2(program(self.program), tree / "bin" / self.inside)
        layers = [oci.pack(rootfs.base(), work / "layers"), oci.pack(tree, work / "layers")]
        called = yaml.safe_load(IMAGES.read_text())[self.variable]
        settings = {"Entrypoint": [f"/bin/{self.inside}"], "User": NOBODY}
        oci.write([oci.Image([called], layers, settings)], work / "image.tar")
        store.remove_tree(work / "layers")
        store.remove_tree(tree)

    def archive(self) -> Path:
        return store.place(self.name, store.key_of(self.inputs())) / "image.tar"

    def step(self) -> Step:
        return artefact(self.name, f"packs the image of {self.program}", self.inputs, self.build)


EXPORTER = Packed("node-exporter-image", "metrics_exporter_image", "prometheus-node-exporter", "node_exporter")
SCRAPER = Packed("prometheus-image", "metrics_prometheus_image", "prometheus", "prometheus")


def steps() -> list[Step]:
    """The programs alone, which tests on loopback want."""
    return [artefact("prometheus", "fetches Prometheus, promtool and the node-exporter (40 MB)", _inputs, _build)]


def image_steps() -> list[Step]:
    """What every rack has is the exporter; a Prometheus is there when somebody asks for one."""
    return [*steps(), *rootfs.steps(), EXPORTER.step(), SCRAPER.step()]
