"""What images of engines from the package index share: pinned wheels, empty NVIDIA libraries, compiled files."""

from __future__ import annotations

import compileall
import sys
from collections.abc import Iterable
from pathlib import Path
from py_compile import PycInvalidationMode

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say
from testbed.make import oci, rootfs
from testbed.make.real import stub_libraries

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


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


def image(work: Path, kept: Path, programs: Iterable[str], reference: str, settings: list[str], say: Say) -> None:
    """The kept layers, a few of the system's programs and the settings, as work/engine.tar."""
    layers, tree = oci.kept(kept), work / "tree"
    for name in programs:
        rootfs.add_program(tree, name)
    top = oci.pack(tree, work / "layers")
    say("writing the archive")
    oci.write(
        [oci.Image([reference], [layers["base"], layers["packages"], top], {"Env": settings})], work / "engine.tar"
    )
    store.remove_tree(tree)
    store.remove_tree(work / "layers")
