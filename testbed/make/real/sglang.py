"""SGLang itself on CPU, as an image: its wheel, torch with empty NVIDIA libraries, a few kernels in torch.

Its scheduler, server, parser, loader, metrics and process tree are what a Spark runs. Not here: a GPU, NCCL, RDMA,
graphs, quantized kernels; what a profile has to say instead is in its `launch:` (testbed/make/real/profiles).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from testbed.base import store
from testbed.base.shell import run
from testbed.base.steps import Say
from testbed.make import oci, rootfs
from testbed.make.real import stub_libraries, wheels
from testbed.make.real.image import Image

NEWEST, POSTS = "0.5.23", "0.5.12"  # POSTS: the one of the posts that this product is made from
HERE = Path(__file__).parent / "sglang_cpu"
KERNELS = HERE / "sgl_kernel"
RECIPE = "1"  # raise to rebuild
# Compilers for GPUs, half a gigabyte; their Python part is imported.
UNUSED = ("triton/backends/nvidia/bin", "triton/backends/nvidia/lib", "triton/backends/amd/lib", "torch/include")
PROGRAMS = ("usr/bin/lscpu",)  # which it calls
# Each rank's core; 0.5.12 wants as many as there are ranks, which are two in its profile.
CORES = {NEWEST: "0|1|0|1", POSTS: "0|1"}


def _settings(release: str) -> list[str]:
    """One thread for each of up to four ranks, on two cores; compiling a layer would ask for a compiler."""
    return [
        oci.PATH_ENV,
        "SGLANG_USE_CPU_ENGINE=1",
        "OMP_NUM_THREADS=1",
        f"SGLANG_CPU_OMP_THREADS_BIND={CORES[release]}",
        "TORCHDYNAMO_DISABLE=1",
        "TORCH_COMPILE_DISABLE=1",
        "HOME=/root",
    ]


def pins(release: str) -> Path:
    return HERE / release / "requirements.txt"


def _kernels(release: str) -> list[Path]:
    """Those of all releases, and what one asks for beyond them."""
    return [folder for folder in (KERNELS, HERE / release / "sgl_kernel") if folder.exists()]


def _layer_inputs(release: str) -> list[store.Part]:
    parts: list[store.Part] = [RECIPE, *UNUSED, *rootfs.base_inputs(), pins(release), *_kernels(release)]
    return [*parts, Path(stub_libraries.__file__), Path(oci.__file__)]


def _build_layer(release: str, work: Path, say: Say) -> None:
    """What takes minutes and changes seldom."""
    tree = work / "tree"
    count = pins(release).read_text().count("==")
    say(f"downloading and unpacking {count} packages (1.3 GB; torch and triton are most of it)")
    packages = wheels.install(tree, pins(release), UNUSED)
    for folder in _kernels(release):
        run(["cp", "-r", folder, packages])
    say("writing empty libraries in NVIDIA's place")
    wheels.without_nvidia(packages, work / "stubs")
    rootfs.add_libraries(tree)
    say("compiling its Python files: imports are most of a start")
    wheels.compiled(tree, packages, say)
    wheels.keep(work, tree, say)


def _image(name: str, release: str) -> Image:
    return wheels.Recipe(
        name,
        release,
        f"installs SGLang {release} itself and torch, without what only a GPU uses",
        partial(_layer_inputs, release),
        partial(_build_layer, release),
        f"localhost/sparkloom-testbed/sglang:{release}-cpu",
        _settings(release),
        PROGRAMS,
    ).image


IMAGE, IMAGE_OF_POSTS = _image("sglang", NEWEST), _image(f"sglang-{POSTS}", POSTS)
