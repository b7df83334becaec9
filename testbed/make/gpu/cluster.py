"""A cluster of one node as programs: Kubernetes, etcd, containerd and the CNI plugins, as the rack's nodes have them.

K3s itself does not fit: one program of it is 70 MB, and it packs to nothing, as it is packed already.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed.base import store
from testbed.base.steps import Say
from testbed.make import binaries, rootfs

BUILT = {"kubernetes": "kubernetes", "etcd": "etcd", "pause": "pause"}
SYSTEM = ("bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr")
PLUGINS = ("ptp", "host-local", "loopback")


def inputs() -> list[store.Part]:
    return [Path(__file__), *binaries.inputs(*BUILT), rootfs.PACKAGES]


def build(work: Path, say: Say) -> None:
    say("collecting Kubernetes, etcd, containerd and three CNI plugins")
    for folder in ("kube", "cni"):
        (work / folder).mkdir()
    for name, program in BUILT.items():
        shutil.copy2(binaries.binary(name, program), work / "kube" / program)
    for name in SYSTEM:
        shutil.copy2(rootfs.rootfs() / "usr" / name, work / "kube" / Path(name).name)
    for name in PLUGINS:
        shutil.copy2(rootfs.rootfs() / "usr/lib/cni" / name, work / "cni" / name)
