"""llama.cpp itself on CPU, as an image: Debian's packages of it, with its programs where a Spark's image has them.

Its server, RPC servers, loader, tokenizer, templates and metrics are what a Spark runs. Not here: the GPU's backend.
"""

from __future__ import annotations

from pathlib import Path

from testbed.base import machine, store
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs
from testbed.make.real import debian
from testbed.make.real.image import Image

RELEASE = "b11669"
REFERENCE = f"localhost/sparkloom-testbed/llama.cpp:{RELEASE}-cpu"
SUITE = "forky"
PINS = Path(__file__).parent / "llamacpp_cpu/packages.txt"
RECIPE = "1"  # raise to rebuild
UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/bash-completion", "usr/share/lintian")
PROGRAMS = {"llama-server": "usr/bin/llama-server", "rpc-server": "usr/libexec/*/llama/bin/ggml-rpc-server"}
# One thread for each rank: two of them share two cores.
SETTINGS = [oci.PATH_ENV, "LLAMA_ARG_THREADS=1", "HOME=/root"]


def _inputs() -> list[store.Part]:
    return [RECIPE, REFERENCE, SUITE, *SETTINGS, *UNUSED, str(PROGRAMS), *rootfs.base_inputs(), PINS]


def _build(work: Path, say: Say) -> None:
    say(f"Debian's packages of llama.cpp {RELEASE} for {machine.architecture()}")
    tree, scratch = work / "tree", work / "scratch"
    scratch.mkdir()
    # The newer libc of that suite lies over the base's; what was built for the older one runs on it.
    debian.unpack(SUITE, PINS, tree, scratch, say)
    for name in UNUSED:
        store.remove_tree(tree / name)
    (tree / "app").mkdir()
    for name, pattern in PROGRAMS.items():
        (found,) = tree.glob(pattern)
        (tree / "app" / name).symlink_to(f"/{found.relative_to(tree)}")
    layers = [oci.pack(rootfs.base(), scratch), oci.pack(tree, scratch)]
    say("writing the archive")
    oci.write([oci.Image([REFERENCE], layers, {"Env": SETTINGS})], work / "engine.tar")
    store.remove_tree(tree)
    store.remove_tree(scratch)


def archive() -> Path:
    return store.place("real-llamacpp", store.key_of(_inputs())) / "engine.tar"


def steps() -> list[Step]:
    title = f"packs llama.cpp {RELEASE} itself from Debian's packages (13 MB to download)"
    return [*rootfs.steps(), artefact("real-llamacpp", title, _inputs, _build)]


IMAGE = Image(RELEASE, REFERENCE, archive, steps)
