"""What images of engines from the package index share: pinned wheels, empty NVIDIA libraries, compiled files."""

from __future__ import annotations

import compileall
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from testbed.base import store
from testbed.base.shell import PIP, run
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs
from testbed.make.real import stub_libraries
from testbed.make.real.image import Image


def python() -> str:
    """The version of the image's own."""
    (library,) = (rootfs.base() / "usr/lib").glob("python3.*")
    return library.name.removeprefix("python")


def packages(tree: Path) -> Path:
    return tree / f"usr/local/lib/python{python()}/dist-packages"


def install(tree: Path, pins: Path, unused: tuple[str, ...]) -> Path:
    """The pinned wheels less what nothing here calls; returns the folder of packages."""
    folder = packages(tree)
    exact = ["--no-compile", "--no-deps", "--only-binary=:all:", f"--python-version={python()}"]
    run([*PIP, "install", *exact, "--target", folder, "-r", pins], timeout=1800)
    for name in unused:
        store.remove_tree(folder / name)
    return folder


def without_nvidia(folder: Path, scratch: Path) -> None:
    """torch is imported without NVIDIA's libraries, of which it asks for more than it ever calls."""
    torch = folder / "torch"
    stub_libraries.make(torch / "lib", list(torch.glob("_C*.so")), scratch)


def compiled(tree: Path, folder: Path, say: Say) -> None:
    """Not compared with the sources later, whose dates the packing takes away."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python() != ours:
        say(f"not compiled: the image has Python {python()} and this is {ours}, so each start takes a minute more")
        return
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, workers=2, invalidation_mode=unchecked, stripdir=tree, prependdir="/")


def keep(work: Path, tree: Path, say: Say) -> None:
    """The layer that takes minutes, over the base of all pods."""
    say("packing")
    oci.keep(work, {"packages": oci.pack(tree, work, compiled=True), "base": oci.pack(rootfs.base(), work)})
    store.remove_tree(tree)


@dataclass(frozen=True)
class Recipe:
    """One release of an engine: a layer that takes minutes and changes seldom, and what is quickly put over it."""

    name: str  # of what is kept
    release: str
    title: str
    made_of: Callable[[], list[store.Part]]  # the layer
    build: Callable[[Path, Say], None]
    reference: str
    settings: list[str]
    programs: tuple[str, ...]  # of the node's system, which it calls

    def _inputs(self) -> list[store.Part]:
        return [*self.made_of(), self.reference, *self.settings, *self.programs]

    def _pack(self, work: Path, say: Say) -> None:
        layers = oci.kept(store.place(f"real-{self.name}-layer", store.key_of(self.made_of())))
        tree = work / "tree"
        for name in self.programs:
            rootfs.add_program(tree, name)
        chosen = [layers["base"], layers["packages"], oci.pack(tree, work / "layers")]
        say("writing the archive")
        oci.write([oci.Image([self.reference], chosen, {"Env": self.settings})], work / "engine.tar")
        store.remove_tree(tree)
        store.remove_tree(work / "layers")

    def archive(self) -> Path:
        return store.place(f"real-{self.name}", store.key_of(self._inputs())) / "engine.tar"

    def steps(self) -> list[Step]:
        layer = artefact(f"real-{self.name}-layer", self.title, self.made_of, self.build)
        packed = artefact(f"real-{self.name}", "packs the image of it", self._inputs, self._pack)
        return [*rootfs.steps(), layer, packed]

    @property
    def image(self) -> Image:
        return Image(self.release, self.reference, self.archive, self.steps)
