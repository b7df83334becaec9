"""SGLang itself on CPU, as an image: its wheel, torch with empty NVIDIA libraries, a few kernels in torch.

Its scheduler, server, parser, loader, metrics and process tree are what a Spark runs. Not here: a GPU, NCCL, RDMA,
graphs, quantized kernels; what a profile has to say instead is in its `launch:` (testbed/make/real/profiles).
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs
from testbed.make.real import stub_libraries

RELEASE = "0.5.23"
REFERENCE = f"localhost/sparkloom-testbed/sglang:{RELEASE}-cpu"
HERE = Path(__file__).parent
PINS, KERNELS = HERE / "sglang_cpu/requirements.txt", HERE / "sglang_cpu/sgl_kernel"
RECIPE = "1"  # raise to rebuild
# Compilers for GPUs, half a gigabyte; their Python part is imported.
UNUSED = ("triton/backends/nvidia/bin", "triton/backends/nvidia/lib", "triton/backends/amd/lib", "torch/include")
# One thread for each rank, on two cores at most; compiling a layer would ask for a compiler.
SETTINGS = [
    oci.PATH_ENV,
    "SGLANG_USE_CPU_ENGINE=1",
    "OMP_NUM_THREADS=1",
    "SGLANG_CPU_OMP_THREADS_BIND=0|1",
    "TORCHDYNAMO_DISABLE=1",
    "TORCH_COMPILE_DISABLE=1",
    "HOME=/root",
]


def _inputs() -> list[store.Part]:
    parts: list[store.Part] = [RECIPE, REFERENCE, *SETTINGS, *UNUSED, *rootfs.base_inputs(), PINS, KERNELS]
    return [*parts, Path(stub_libraries.__file__), Path(oci.__file__)]


def _python() -> str:
    """The version of the image's own."""
    (library,) = (rootfs.base() / "usr/lib").glob("python3.*")
    return library.name.removeprefix("python")


def _build(work: Path, say: Say) -> None:
    scratch = work / "scratch"
    tree = scratch / "tree"
    packages = tree / f"usr/local/lib/python{_python()}/dist-packages"
    count = PINS.read_text().count("==")
    say(f"downloading and unpacking {count} packages (1.3 GB; torch and triton are most of it)")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        "--no-deps",
    ]
    run([*pip, "--only-binary=:all:", f"--python-version={_python()}", "--target", packages, "-r", PINS], timeout=1800)
    for name in UNUSED:
        store.remove_tree(packages / name)
    run(["cp", "-r", KERNELS, packages])
    say("writing empty libraries in NVIDIA's place")
    torch = packages / "torch"
    stub_libraries.make(torch / "lib", list(torch.glob("_C*.so")), scratch / "stubs")
    rootfs.add_libraries(tree)
    say("compiling its Python files: imports are most of a start")
    _compile(tree, packages, say)
    say("packing")
    layer = oci.pack(tree, scratch / "layers", compiled=True)
    base = oci.pack(rootfs.base(), scratch / "layers")
    oci.write([oci.Image([REFERENCE], [base, layer], {"Env": SETTINGS})], work / "engine.tar")
    store.remove_tree(scratch)


def _compile(tree: Path, packages: Path, say: Say) -> None:
    """Not compared with the sources later, whose dates the packing takes away."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if _python() != ours:
        say(f"not compiled: the image has Python {_python()} and this is {ours}, so each start takes a minute more")
        return
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(packages, quiet=2, workers=2, invalidation_mode=unchecked, stripdir=tree, prependdir="/")


def archive() -> Path:
    return store.place("real-sglang", store.key_of(_inputs())) / "engine.tar"


def steps() -> list[Step]:
    return [*rootfs.steps(), artefact("real-sglang", f"packs SGLang {RELEASE} itself, on CPU", _inputs, _build)]
