"""The node's container image: bootstrapped system, kind's node files, Kubernetes, stand-ins, images preloaded.

Where a registry gives kind's published image, `published` makes it of that one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from testbed.base import docker, names, store
from testbed.base.shell import APART, RackError, out, run
from testbed.base.steps import Say, Step, artefact
from testbed.make import binaries, images, oci, published, rootfs, source

RECIPE = "4"  # raise to rebuild
REPOSITORY = "sparkloom/node"
WRAPPER = names.KIND_DIR / "runc-wrapper"
ON = ("kubelet", "containerd", "undo-mount-hacks", "systemd-networkd", "sparkloom-testbed", "sparkloom-gpu")
# binfmt is the whole machine's; wait-online waits for links that no one configured
MASKED = (
    "systemd-binfmt",
    "systemd-networkd-wait-online",
    "systemd-udevd",
    "chrony",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
)
HOOK = "/usr/local/lib/sparkloom-testbed/pod-hook"
STALE_WANTS = (
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
)


def _inputs() -> list[store.Part]:
    made_of = published.inputs() if source.is_registry() else []
    return [
        *made_of,
        RECIPE,
        *images.inputs(),
        *binaries.inputs("kind", "gpu"),
        *rootfs.base_inputs(),
        names.NODE_FILES,
        WRAPPER,
        Path(__file__),
    ]


def key() -> str:
    return store.key_of(_inputs())


def tag() -> str:
    return f"{REPOSITORY}:{key()}"


def places() -> list[Path]:
    """The artefacts in the cache that nodes are made of now."""
    return [store.place("node-image", key()), images.archive().parent]


def kubectl() -> Path:
    if source.is_registry():
        return store.place("node-image", key()) / "kubectl"
    return binaries.binary("kubernetes", "kubectl")


def _build(work: Path, say: Say) -> None:
    if source.is_registry():
        published.build(work, say, tag(), WRAPPER, ON, MASKED)
    else:
        _build_own(work, say)


def _build_own(work: Path, say: Say) -> None:
    tree = work / "tree"
    say("copying the root file system")
    run(["cp", "-a", rootfs.rootfs(), tree])
    _add_files(tree)
    _units(tree)
    say("preloading the images into containerd")
    _preload(tree, names.CACHE / "logs" / "preload.log")
    say("writing the image")
    _write_image(tree, work, tag())
    store.remove_tree(tree)


def _add_files(tree: Path) -> None:
    for origin in (binaries.kind_files(), names.NODE_FILES):
        run(["cp", "-rT", "--remove-destination", origin, tree])
    for folder in ("etc/kubernetes/manifests", names.NODE_STATE, "etc/netplan"):
        (tree / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    images.link_commands(tree / "usr/bin", ("kubeadm", "kubelet"))
    shutil.copy2(binaries.binary("kubernetes", "kubectl"), tree / "usr/bin/kubectl")
    shutil.copy2(binaries.binary("gpu", "gpu-stand-in"), tree / "usr/local/lib/sparkloom-testbed/gpu-stand-in")
    (tree / "kind/version").write_text(names.KUBERNETES)  # kind compares it byte by byte
    shutil.copy2(WRAPPER, tree / "usr/local/sbin/runc")
    (tree / "usr/local/bin/containerd").symlink_to("/usr/bin/containerd")
    for folder in ("usr/local/bin", "usr/local/sbin", "kind/bin"):
        for path in (tree / folder).iterdir():
            if not path.is_symlink():
                path.chmod(0o755)
    for name in ("resolv.conf", "hostname", "hosts"):
        (tree / "etc" / name).write_text("")
    _cni_plugins(tree)


def _cni_plugins(tree: Path) -> None:
    """Real files in containerd's and Multus' folder: the Multus daemon mounts nothing else, links would dangle."""
    origin = tree / "usr/lib/cni"
    if not (origin / "host-device").exists():
        raise RackError(
            f"expected Debian's CNI plugins in {origin}; see containernetworking-plugins in {rootfs.PACKAGES}"
        )
    for place in (names.CNI_BIN, "/opt/cni/bin"):
        target = tree / place.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        run(["cp", "-rT", origin, target])
    (tree / names.CNI_CONF.lstrip("/")).mkdir(parents=True, exist_ok=True)
    store.remove_tree(origin)
    origin.symlink_to("/opt/cni/bin")


def _units(tree: Path) -> None:
    """A node boots what it needs and nothing of a machine's, as in kind's own image."""
    for pattern in STALE_WANTS:
        for path in tree.glob(pattern):
            path.unlink()
    with (tree / "etc/systemd/journald.conf").open("a") as journald:
        journald.write("ReadKMsg=no\n")
    init = tree / "sbin/init"
    init.unlink(missing_ok=True)
    init.symlink_to("/lib/systemd/systemd")
    run(["chroot", tree, "systemctl", "enable", *ON])
    run(["chroot", tree, "systemctl", "mask", *MASKED])
    spec = json.loads(out(["chroot", tree, "ctr", "oci", "spec"]))
    del spec["process"]["rlimits"]
    spec["hooks"] = {"createContainer": [{"path": HOOK}]}
    (tree / "etc/containerd/cri-base.json").write_text(json.dumps(spec))


PRELOAD = r"""
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"; mount -t tmpfs tmpfs "$1/run"; mount -t tmpfs tmpfs "$1/tmp"; mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"; touch "$1/tmp/images.tar"; mount --bind "$2" "$1/tmp/images.tar"
exec chroot "$1" /bin/bash -ec '
containerd >/tmp/containerd.log 2>&1 & daemon=$!
for i in $(seq 60); do ctr version >/dev/null 2>&1 && break; sleep 0.5; done
pinned=io.cri-containerd.pinned=pinned
ctr --namespace=k8s.io images import --label=$pinned --no-unpack /tmp/images.tar ||
  { tail /tmp/containerd.log; exit 1; }
ctr --namespace=k8s.io images ls -q
kill $daemon; wait $daemon || true'
"""


def _preload(tree: Path, log: Path) -> None:
    """containerd of the node itself reads the archive into its store, in a mount namespace that ends with it."""
    log.unlink(missing_ok=True)
    run([*APART, "bash", "-c", PRELOAD, "preload", tree, images.archive()], log=log)
    taken = set(log.read_text().splitlines())
    lost = [name for name in oci.references(images.archive()) if name not in taken]
    if lost:
        raise RackError(f"containerd did not take these images: {', '.join(lost)}; see {log}")


def _write_image(tree: Path, work: Path, name: str) -> None:
    """A docker archive made by hand: `docker import` cannot set the stop signal that systemd needs."""
    layer, archive = work / "layer.tar", work / "node.tar"
    skip = [f"--exclude=./{folder}/*" for folder in ("proc", "sys", "run", "tmp", "dev")]
    run(["tar", "-C", tree, "--numeric-owner", "--one-file-system", *skip, "-cf", layer, "."])
    digest = out(["sha256sum", layer]).split()[0]
    config = {
        "architecture": oci.ARCHITECTURES[out(["uname", "-m"])],
        "os": "linux",
        "config": {
            "Env": [oci.PATH_ENV, "container=docker"],
            "StopSignal": "SIGRTMIN+3",
            "Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    (work / "config.json").write_text(json.dumps(config))
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    (work / "manifest.json").write_text(json.dumps(manifest))
    run(["tar", "-C", work, "--remove-files", "-cf", archive, "manifest.json", "config.json", "layer.tar"])


def _load(say: Say) -> None:
    say(f"docker load of {tag()}")
    run(["docker", "load", "-i", store.place("node-image", key()) / "node.tar"])
    if not docker.image_id(tag()):
        raise RackError(f"docker load ended well, but {tag()} is not there")
    listed = out(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY], check=False)
    for old in [line for line in listed.splitlines() if line != tag()][store.KEEP - 1 :]:
        run(["docker", "image", "rm", old], check=False)


def steps() -> list[Step]:
    return [
        artefact("node-image", "assembles the node image", _inputs, _build),
        Step("node-load", "gives the node image to Docker", lambda: bool(docker.image_id(tag())), _load),
    ]
