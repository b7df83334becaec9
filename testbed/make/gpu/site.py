"""SGLang and its kernels as one folder of packages for the machine's own Python, as small as they can be."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from testbed.base import machine, store
from testbed.base.shell import PIP, RackError, run
from testbed.base.steps import Say
from testbed.make.gpu import thin
from testbed.make.real import stub_libraries

HERE = Path(__file__).parent
PYTHON, ABI = "3.12", 90  # of the machine that is lent: its Python, and Hopper
GLIBC = (39, 35, 34, 31, 28, 27, 26, 24, 17, 12, 5)
TAGS = (*(f"manylinux_2_{minor}_x86_64" for minor in GLIBC), "manylinux2014_x86_64", "manylinux1_x86_64", "any")
EXACT = ("--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp")
# FlashAttention 3 is 1.07 GB of kernels; the others are for GPUs or networks that are not there.
UNUSED = (
    "sgl_kernel/flash_ops.abi3.so", "sgl_kernel/flashmla_ops.abi3.so", "sgl_kernel/sm100", "sgl_kernel/testing", "lib",
    "include", "bin", "mscclpp", "nccl", "_mscclpp.cpython-310-x86_64-linux-gnu.so", "pycountry/locales",
)  # fmt: skip


def wheels(pins: Path, target: Path) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    platforms = [word for tag in TAGS for word in ("--platform", tag)]
    run([*PIP, "download", *EXACT, *platforms, "--dest", target, "-r", pins], timeout=3600)
    return sorted(target.glob("*.whl"))


def unpack(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            first, _, rest = name.partition("/")
            kind, _, inner = rest.partition("/")
            place = name if not first.endswith(".data") else inner if kind in ("purelib", "platlib") else ""
            if place and not name.endswith("/"):
                path = target / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.read(name))


def build(work: Path, say: Say) -> None:
    """`site.tar.xz`, and what was left out of it in words."""
    site, downloaded = work / "site", work / "wheels"
    say("downloading SGLang and its kernels (480 MB)")
    for wheel in wheels(HERE / "wheels.txt", downloaded):
        unpack(wheel, site)
    store.remove_tree(downloaded)
    for name in UNUSED:
        store.remove_tree(site / name)
    for library in site.rglob("*.so*"):
        gone = thin.thin(library, ABI)
        run(["strip", "--strip-unneeded", library], check=False)
        if gone:
            say(f"{library.name}: {gone / 1e6:.1f} MB of kernels for other GPUs blanked")
    check(site, work / "check", say)
    say("packing")
    packed = [
        "tar",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--mtime=@0",
        "--exclude=__pycache__",
        "--exclude=*.pyi",
        "--exclude=*.a",
        "-C",
    ]
    run([*packed, site, "-cJf", work / "site.tar.xz", "."], env={"XZ_OPT": "-9 -T1"}, timeout=3600)
    store.remove_tree(site)


def check(site: Path, scratch: Path, say: Say) -> None:
    """Imports all of it against empty libraries in NVIDIA's place: no second on a GPU is for a missing module."""
    python = _pyenv() or shutil.which(f"python{PYTHON}")  # the shim of pyenv is there without it, too
    if not python:
        say(f"not checked: no python{PYTHON} on this machine")
        return
    machine.require_space(scratch.parent, 4, "torch, unpacked for the check of imports and removed after it")
    beside = scratch / "beside"
    for wheel in wheels(HERE / "machine.txt", scratch / "wheels"):
        unpack(wheel, beside)
    store.remove_tree(scratch / "wheels")
    stub_libraries.make(beside / "torch/lib", [*(beside / "torch").glob("_C*.so"), *site.rglob("*.so*")], scratch / "c")
    paths = os.pathsep.join(map(str, (site, beside)))
    libraries = {"PYTHONPATH": paths, "LD_LIBRARY_PATH": str(beside / "torch/lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = run([python, HERE / "imports.py"], env=libraries, check=False, timeout=1200)
    (scratch.parent / "imports.txt").write_text(done.stdout + done.stderr)
    store.remove_tree(scratch)
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()
        failed = [line for line in said if line.startswith("FAILED")] or said[-6:]
        raise RackError(f"what is packed cannot be imported ({done.returncode}): {' | '.join(failed)[:2000]}")


def _pyenv() -> str:
    kept = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python3"))
    return str(kept[-1]) if kept else ""
