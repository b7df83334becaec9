"""The images every node starts with, as one OCI archive: Kubernetes' own, Multus, a tools image, and a stand-in.

The device plugin's image has the real one's name and our stand-in in it: one GPU with nothing behind it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.base import names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import binaries, oci, rootfs, source

RECIPE = "5"  # raise to rebuild
FILES = names.KIND_DIR / "images"  # small files and the pause program
IPTABLES = ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore")
BUILDS = ("kubernetes", "etcd", "coredns", "pause", "multus", "gpu")
SIMPLE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROXY = "kube-proxy"

Pack = Callable[[Path], oci.Layer]


def _inputs() -> list[store.Part]:
    builds = [name for name in BUILDS if name not in source.replaced()]
    return [RECIPE, *binaries.inputs(*builds), *rootfs.base_inputs(), FILES, Path(oci.__file__)]


def stage(tree: Path, files: Iterable[tuple[Path, str]]) -> Path:
    """A layer's tree: programs at their places."""
    for origin, name in files:
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin, target)
        target.chmod(0o755)
    return tree


def _pause(work: Path) -> Path:
    go = binaries.binary("pause", "pause")
    return stage(work / "pause", [(go, "pause")])


def _proxy(work: Path) -> Path:
    """kube-proxy's iptables must be of the same kind (nft, legacy) as the kubelet's on the node."""
    wrappers = [(FILES / "iptables-like-the-node", f"usr/local/sbin/{name}") for name in IPTABLES]
    return stage(work / PROXY, wrappers)


def _commands(work: Path) -> Path:
    """One layer for all of Kubernetes' images: they are links to one program."""
    tree = work / binaries.KUBERNETES
    link_commands(tree / "usr/local/bin", (*SIMPLE, PROXY))
    return tree


def link_commands(folder: Path, commands: Iterable[str]) -> None:
    """Kubernetes' one program in a folder, and what it is called by."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(binaries.binary("kubernetes", binaries.KUBERNETES), folder / binaries.KUBERNETES)
    for command in commands:
        (folder / command).symlink_to(binaries.KUBERNETES)


def _multus(work: Path) -> Path:
    place = "usr/src/multus-cni/bin"
    files = [(binaries.binary("multus", c), f"{place}/{c.removesuffix('-cni')}") for c in binaries.MULTUS_COMMANDS]
    tree = stage(work / "multus-image", files)
    for name in ("install_multus", "thin_entrypoint"):
        (tree / name).symlink_to(f"/{place}/{name}")
    return tree


def _gpu_plugin(work: Path) -> Path:
    return stage(work / "gpu-plugin", [(binaries.binary("gpu", "gpu-stand-in"), "usr/bin/nvidia-device-plugin")])


def _additions(scratch: Path, base: oci.Layer, pack: Pack) -> list[oci.Image]:
    multus_names = [f"{names.MULTUS_REPOSITORY}:{tag}" for tag in (f"{names.MULTUS}-thick", names.MULTUS)]
    return [
        oci.Image(multus_names, [base, pack(_multus(scratch))], {"Entrypoint": ["/thin_entrypoint"]}),
        oci.Image(
            [names.GPU_PLUGIN_IMAGE], [base, pack(_gpu_plugin(scratch))], {"Entrypoint": ["nvidia-device-plugin"]}
        ),
        oci.Image([names.TOOLS_IMAGE], [base], {"Cmd": ["sleep", "infinity"]}),
        oci.Image([names.PYTHON_IMAGE], [base], {"Cmd": ["python3"]}),
    ]


def _kubernetes(scratch: Path, base: oci.Layer, pack: Pack) -> list[oci.Image]:
    """Kubernetes' own images; kind's published node image brings its own."""
    commands = pack(_commands(scratch))
    simple = [_command(name, [commands]) for name in SIMPLE]
    etcd = pack(stage(scratch / "etcd", [(binaries.binary("etcd", "etcd"), "usr/local/bin/etcd")]))
    coredns = pack(stage(scratch / "coredns", [(binaries.binary("coredns", "coredns"), "coredns")]))
    return [
        *simple,
        oci.Image([names.ETCD_IMAGE], [etcd], {"Entrypoint": ["etcd"]}),
        oci.Image([names.COREDNS_IMAGE], [coredns], {"Entrypoint": ["/coredns"]}),
        oci.Image([names.PAUSE_IMAGE], [pack(_pause(scratch))], {"Entrypoint": ["/pause"]}),
        _command(PROXY, [base, commands, pack(_proxy(scratch))]),
    ]


def _command(name: str, layers: list[oci.Layer]) -> oci.Image:
    return oci.Image([f"registry.k8s.io/{name}:{names.KUBERNETES}"], layers, {"Entrypoint": [name]})


def _build(work: Path, say: Say) -> None:
    scratch = work / "scratch"

    def pack(tree: Path) -> oci.Layer:
        say(f"packing {tree.name}")
        return oci.pack(tree, scratch / "layers")

    base = pack(rootfs.base())
    chosen = [*_additions(scratch, base, pack), *([] if source.is_registry() else _kubernetes(scratch, base, pack))]
    say("writing the archive")
    oci.write(chosen, work / "images.tar")
    run(["rm", "-rf", scratch])


def archive() -> Path:
    return store.place("images", store.key_of(_inputs())) / "images.tar"


def inputs() -> list[store.Part]:
    return _inputs()


def steps() -> list[Step]:
    return [artefact("images", "packs the nodes' images as one OCI archive", _inputs, _build)]
