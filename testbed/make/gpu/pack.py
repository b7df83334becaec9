"""The pack: one folder of at most 60 MB, whose test-gpu.sh lays it out on a machine with a GPU and runs tests/gpu.

The cluster of one node goes in a folder of its own, and the model that speaks (98 MB) in two, for machines that take no
more than one folder at a time. What is not there is skipped.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import yaml

from sparkloom.base import document
from sparkloom.inputs import inventory as inventories
from sparkloom.render.manifests import gpu
from testbed.base import names, store
from testbed.base.shell import RackError, run
from testbed.base.steps import Say, Step, artefact
from testbed.make import binaries, rootfs
from testbed.make.gpu import cluster, programs, site
from testbed.standins.hub import smollm

HERE = Path(__file__).parent
FOLDER = names.REPO / ".build/gpu"
ENGINE, CLUSTER, PARTS = FOLDER / "pack", FOLDER / "cluster", (FOLDER / "model-1", FOLDER / "model-2")
MOST = 60 * 10**6
TAKES = (
    "scripts/sparkloom", "testbed/__init__.py", "testbed/base", "testbed/beds/__init__.py", "testbed/beds/gpu",
    "testbed/make/__init__.py", "testbed/make/gpu", "testbed/make/oci.py", "testbed/standins/__init__.py",
    "testbed/standins/hub", "tests/gpu", "inventories/gb10", "model_profiles", "image_recipes", "pyproject.toml",
)  # fmt: skip
SCRIPT = "test-gpu.sh"


def _program_inputs() -> list[store.Part]:
    return [HERE / "programs.py", "1"]


def _site_inputs() -> list[store.Part]:
    return [HERE / name for name in ("site.py", "thin.py", "imports.py", "wheels.txt", "machine.txt")]


def place(step: str) -> Path:
    inputs = {"gpu-programs": _program_inputs, "gpu-site": _site_inputs, "gpu-cluster": cluster.inputs}
    return store.place(step, store.key_of(inputs[step]()))


def _render(folder: Path) -> None:
    folder.mkdir()
    for profile in sorted((HERE / "profiles").glob("*.yml")):
        words = ["render", str(profile), "-i", str(names.REPO / "inventories/gb10"), "-o", str(folder)]
        run([names.REPO / ".venv/bin/sparkloom", *words])
    inventory = names.REPO / "inventories/gb10"
    pinned = document.load(inventory / "group_vars/all/versions.yml").data["gpu_runtime_image"]
    objects = gpu.device_plugin(inventories.load(inventory), pinned, "nvidia")
    (folder / "device-plugin.yaml").write_text(yaml.safe_dump_all(objects))


def _packed(source: Path, target: Path, *words: str | Path) -> None:
    tar = ["tar", "--sort=name", "--owner=0", "--group=0", "--mtime=@0", "--exclude=__pycache__", "-C", source, "-cJf"]
    run([*tar, target, *words], env={"XZ_OPT": "-9 -T1"}, timeout=3600)


def assemble(say: Say) -> None:
    """Anew each time: the product changes, what it runs on is kept."""
    store.remove_tree(FOLDER)
    ENGINE.mkdir(parents=True)
    shutil.copy(place("gpu-site") / "site.tar.xz", ENGINE)
    _packed(place("gpu-programs"), ENGINE / "programs.tar.xz", "bin", "lib")
    _render(FOLDER / "rendered")
    _packed(FOLDER, ENGINE / "rendered.tar.xz", "rendered")
    store.remove_tree(FOLDER / "rendered")
    _packed(names.REPO, ENGINE / "product.tar.xz", *TAKES)
    shutil.copy(names.REPO / "testbed/face" / SCRIPT, ENGINE)
    CLUSTER.mkdir()
    _packed(place("gpu-cluster"), CLUSTER / "cluster.tar.xz", "kube", "cni")
    model = smollm.file().read_bytes()
    for number, part in enumerate(PARTS):
        part.mkdir()
        half = len(model) // 2
        (part / f"smollm2.gguf.{number}").write_bytes(model[half:] if number else model[:half])
    for folder in (ENGINE, CLUSTER, *PARTS):
        size = sum(file.stat().st_size for file in folder.iterdir())
        say(f"{folder.relative_to(names.REPO)}: {size / 1e6:.1f} MB")
        if size > MOST:
            raise RackError(f"{folder} has {size / 1e6:.1f} MB, expected at most {MOST / 1e6:.0f}")


def steps() -> list[Step]:
    system = "builds NVIDIA's container runtime, CDI tool and device plugin (Go, minutes of one core)"
    engine = "packs SGLang with its kernels for one GPU, and imports it against an empty driver"
    return [
        artefact("gpu-programs", system, _program_inputs, programs.build),
        artefact("gpu-site", engine, _site_inputs, lambda work, say: site.build(work, say)),
        replace(rootfs.steps()[0], aside=False),
        binaries.steps()[0],
        artefact("gpu-cluster", "collects Kubernetes, etcd and containerd for one node", cluster.inputs, cluster.build),
        *smollm.steps(),
        Step("gpu-pack", "puts the folder together: all that, the product, rendered pods", lambda: False, assemble),
    ]
