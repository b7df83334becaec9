"""Static binaries built from Go modules at pinned versions (testbed/make/go).

One go.mod for all of them: Kubernetes, CoreDNS, Multus, etcd and Traefik share a third of their source, and what two
programs take from one version of a module is compiled once. It asks for the newest version that any of them asks for.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import out, run
from testbed.base.steps import Say, Step, artefact, duration
from testbed.make import golang, source

RECIPE = "1"  # raise to rebuild
SOURCE = names.REPO / "testbed" / "make" / "go"
VERSIONS = (SOURCE / "go.mod", SOURCE / "go.sum")
MULTUS_MODULE = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd"
VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Build:
    name: str
    title: str
    packages: tuple[str, ...]  # import paths; one binary each, named by the last element
    rename: str = ""  # where the last element is no good name
    ldflags: str = ""

    @property
    def own(self) -> list[Path]:
        """What is written here of it."""
        return [SOURCE / self.name] if f"./{self.name}" in self.packages else []


def _kubernetes_flags() -> str:
    major, minor, _ = names.KUBERNETES.lstrip("v").split(".")
    facts = {"gitVersion": names.KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {VERSION_PACKAGE}.{key}={value}" for key, value in facts.items())


KUBERNETES_COMMANDS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubeadm",
    "kubectl",
)
MULTUS_COMMANDS = ("multus", "multus-daemon", "multus-shim", "thin_entrypoint", "install_multus", "passthru-cni")
BUILDS = (
    Build("kind", f"builds kind {names.KIND}", ("sigs.k8s.io/kind",)),
    Build("etcd", "builds etcd", ("go.etcd.io/etcd/server/v3",), rename="etcd"),
    Build("pause", "builds the pause program of pods", ("./pause",), rename="pause"),
    Build("gpu", "builds the stand-in for NVIDIA's device plugin", ("./gpu",), rename="gpu-stand-in"),
    Build("coredns", "builds CoreDNS with a dozen plugins", ("./coredns",), rename="coredns"),
    Build(
        "kubernetes",
        f"builds Kubernetes {names.KUBERNETES} (the longest step)",
        tuple(f"k8s.io/kubernetes/cmd/{command}" for command in KUBERNETES_COMMANDS),
        ldflags=_kubernetes_flags(),
    ),
    Build(
        "multus", f"builds Multus {names.MULTUS}", tuple(f"{MULTUS_MODULE}/{command}" for command in MULTUS_COMMANDS)
    ),
)


def _inputs(build: Build) -> list[store.Part]:
    return [RECIPE, machine.architecture(), *build.packages, build.ldflags, *VERSIONS, *build.own]


def _compile(build: Build, work: Path, say: Say) -> None:
    go = golang.find(say)
    golang.begin(build.name)
    env = golang.environment(go)
    log = names.CACHE / "logs" / f"{build.name}.log"
    log.unlink(missing_ok=True)
    say(f"fetching modules ({out([go, 'version']).removeprefix('go version ')})")
    run([go, "list", "-deps", *build.packages], env=env, cwd=SOURCE, log=log)  # those that it needs, not all
    target = work / "bin"
    target.mkdir()
    flags = [*golang.FLAGS, "-ldflags", f"-s -w {build.ldflags}".strip()]
    # one command for all: while one binary is linked, the next one's packages compile
    destination = target / build.rename if build.rename else f"{target}/"
    command = [go, "build", *flags, "-o", destination, *build.packages]
    say(f"compiling {len(build.packages)} program(s)")
    with _announce(target, say):
        run(command, env=env, cwd=SOURCE, log=log)
    if build.name == "kind":
        _keep_base_files(go, build, env, work)


@contextmanager
def _announce(folder: Path, say: Say) -> Iterator[None]:
    """Tell of each file as it appears."""
    stop, start = threading.Event(), time.monotonic()

    def look() -> None:
        seen: set[str] = set()
        while True:
            ended = stop.wait(2)
            for path in sorted(folder.iterdir()):
                if path.name not in seen:
                    seen.add(path.name)
                    say(f"{path.name} after {duration(time.monotonic() - start)} ({path.stat().st_size >> 20} MiB)")
            if ended:
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _keep_base_files(go: Path, build: Build, env: dict[str, str], work: Path) -> None:
    """kind's own files for a node (units, containerd's configuration, entrypoint) come with its module."""
    listed = run([go, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind"], env=env, cwd=SOURCE).stdout.strip()
    shutil.copytree(Path(listed) / "images/base/files", work / "node-files")
    run(["chmod", "-R", "u+w", work / "node-files"])


def place(name: str) -> Path:
    build = next(b for b in BUILDS if b.name == name)
    return store.place(name, store.key_of(_inputs(build)))


def binary(build: str, name: str) -> Path:
    return place(build) / "bin" / name


def kind_files() -> Path:
    return place("kind") / "node-files"


def inputs(*which: str) -> list[store.Part]:
    """What these binaries are made from: part of the key of whatever contains them."""
    return [part for build in BUILDS if build.name in which for part in _inputs(build)]


def _needed() -> list[Build]:
    return [b for b in BUILDS if b.name not in source.replaced()]


def _step(build: Build) -> Step:
    made = artefact(
        build.name,
        build.title,
        partial(_inputs, build),
        partial(_compile, build),
        warm=partial(golang.begun, build.name),
    )

    def done() -> bool | str:
        return made.done() if build in _needed() else f"not needed: it comes with {source.IMAGE_NAME}"

    return replace(made, done=done)


def kubernetes_is_built() -> bool:
    build = next(b for b in BUILDS if b.name == "kubernetes")
    return store.is_built(build.name, store.key_of(_inputs(build)))


def steps() -> list[Step]:
    return [_step(build) for build in BUILDS]
