"""SGLang itself on CPU, as an image: its wheel, torch with empty NVIDIA libraries, a few kernels in torch.

Its scheduler, server, parser, loader, metrics and process tree are what a Spark runs. Not here: a GPU, NCCL, RDMA,
graphs, quantized kernels; what a profile has to say instead is in its `launch:` (testbed/make/real/profiles).
"""

from __future__ import annotations

from pathlib import Path

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say
from testbed.make import oci, rootfs
from testbed.make.real import stub_libraries, wheels

RELEASE = "0.5.23"
REFERENCE = f"localhost/sparkloom-testbed/sglang:{RELEASE}-cpu"
HERE = Path(__file__).parent
PINS, KERNELS = HERE / "sglang_cpu/requirements.txt", HERE / "sglang_cpu/sgl_kernel"
RECIPE = "1"  # raise to rebuild
# Compilers for GPUs, half a gigabyte; their Python part is imported.
UNUSED = ("triton/backends/nvidia/bin", "triton/backends/nvidia/lib", "triton/backends/amd/lib", "torch/include")
PROGRAMS = ("usr/bin/lscpu",)  # which it calls
# One thread for each of up to four ranks, on two cores; compiling a layer would ask for a compiler.
SETTINGS = [
    oci.PATH_ENV,
    "SGLANG_USE_CPU_ENGINE=1",
    "OMP_NUM_THREADS=1",
    "SGLANG_CPU_OMP_THREADS_BIND=0|1|0|1",
    "TORCHDYNAMO_DISABLE=1",
    "TORCH_COMPILE_DISABLE=1",
    "HOME=/root",
]


def _layer_inputs() -> list[store.Part]:
    parts: list[store.Part] = [RECIPE, *UNUSED, *rootfs.base_inputs(), PINS, KERNELS]
    return [*parts, Path(stub_libraries.__file__), Path(oci.__file__)]


def _build_layer(work: Path, say: Say) -> None:
    """What takes minutes and changes seldom."""
    tree = work / "tree"
    count = PINS.read_text().count("==")
    say(f"downloading and unpacking {count} packages (1.3 GB; torch and triton are most of it)")
    packages = wheels.install(tree, PINS, UNUSED)
    run(["cp", "-r", KERNELS, packages])
    say("writing empty libraries in NVIDIA's place")
    wheels.without_nvidia(packages, work / "stubs")
    rootfs.add_libraries(tree)
    say("compiling its Python files: imports are most of a start")
    wheels.compiled(tree, packages, say)
    wheels.keep(work, tree, say)


IMAGE = wheels.Image(
    "sglang",
    f"installs SGLang {RELEASE} itself and torch, without what only a GPU uses",
    _layer_inputs,
    _build_layer,
    REFERENCE,
    SETTINGS,
    PROGRAMS,
)
archive, steps = IMAGE.archive, IMAGE.steps
