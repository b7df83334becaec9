"""Static binaries built from Go modules at pinned versions (testbed/make/go).

One go.mod for all of them: Kubernetes, CoreDNS, Multus, etcd and Traefik share a third of their source, and what two
programs take from one version of a module is compiled once. It asks for the newest version that any of them asks for.
One `go build` for all that nodes are made of: while a program is linked, which one core does, the other one compiles.
Traefik, which only a rack that stands needs, is built beside what mostly waits: packing, Docker, a cluster's start.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import out, run
from testbed.base.steps import Say, Step, duration
from testbed.make import golang, source, traefik_source

RECIPE = "2"  # raise to rebuild
EVERY = 15.0  # seconds between two words of how far it is
SOURCE, VERSIONS = golang.SOURCE, golang.VERSIONS
TRAEFIK = "traefik-program"
DEFINITIONS = "definitions.yml"  # of Traefik's kinds
MULTUS_MODULE = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd"
VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Build:
    name: str
    packages: tuple[str, ...]  # import paths; one binary each, named by the last element
    rename: str = ""  # where the last element is no good name
    ldflags: str = ""
    also: tuple[store.Part, ...] = ()  # what else it is made from

    @property
    def own(self) -> list[store.Part]:
        """What is written here of it."""
        return [*self.also, *([SOURCE / self.name] if f"./{self.name}" in self.packages else [])]


def _kubernetes_flags() -> str:
    major, minor, _ = names.KUBERNETES.lstrip("v").split(".")
    facts = {"gitVersion": names.KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {VERSION_PACKAGE}.{key}={value}" for key, value in facts.items())


KUBERNETES = "kubernetes"  # the program that is all of them but kubectl
MULTUS_COMMANDS = ("multus-daemon", "multus-shim", "thin_entrypoint", "install_multus", "passthru-cni")
BUILDS = (
    Build("kind", ("sigs.k8s.io/kind",)),
    Build("etcd", ("go.etcd.io/etcd/server/v3",), rename="etcd"),
    Build("pause", ("./pause",), rename="pause"),  # of pods
    Build("gpu", ("./gpu",), rename="gpu-stand-in"),  # for NVIDIA's device plugin
    Build("coredns", ("./coredns",), rename="coredns"),
    Build(
        "kubernetes",
        (f"./{KUBERNETES}", "k8s.io/kubernetes/cmd/kubectl"),
        ldflags=_kubernetes_flags(),
    ),
    Build("multus", tuple(f"{MULTUS_MODULE}/{command}" for command in MULTUS_COMMANDS)),
    Build(TRAEFIK, (f"{traefik_source.ITSELF.path}/cmd/traefik",), also=tuple(traefik_source.inputs())),
)
TITLE = f"builds Kubernetes {names.KUBERNETES}, etcd, CoreDNS, Multus, kind and two small ones (the longest step)"
ASIDE = f"builds Traefik {traefik_source.VERSION}, the one of K3s' pinned release, while nodes are made of the others"


def _inputs(build: Build) -> list[store.Part]:
    return [RECIPE, machine.architecture(), *build.packages, build.ldflags, *VERSIONS, *build.own]


def _compile(which: frozenset[str], step: str, say: Say) -> None:
    builds = _missing(which)
    go = golang.find(say)
    golang.begin(step)
    env = golang.environment(go)
    log = names.CACHE / "logs" / f"{step}.log"
    log.unlink(missing_ok=True)
    wanted = [package for build in builds for package in build.packages]
    say(f"fetching modules ({out([go, 'version']).removeprefix('go version ')})")
    here = _source(go, env, changed=TRAEFIK in which)
    # those that they need, not all of go.mod's
    listed = run([go, "list", "-deps", *wanted], env=env, cwd=here).stdout.split()
    with ExitStack() as kept:
        folders = {
            build: kept.enter_context(store.building(build.name, store.key_of(_inputs(build)))) for build in builds
        }
        made = golang.ROOT / step
        store.remove_tree(made)
        made.mkdir(parents=True)
        stamps = " ".join(build.ldflags for build in builds)
        command = [go, "build", "-v", *golang.FLAGS, "-ldflags", f"-s -w {stamps}".strip(), "-o", f"{made}/", *wanted]
        say(f"compiling {len(wanted)} program(s) of {len(listed):,} packages")
        with _announce(made, log, len(listed), say):
            run([*(["nice"] if TRAEFIK in which else []), *command], env=env, cwd=here, log=log)
        for build, folder in folders.items():
            _keep(build, made, folder / "bin")
            if build.name == "kind":
                _keep_base_files(go, build, env, folder)
            if build.name == TRAEFIK:
                shutil.copy2(here / traefik_source.DEFINITIONS, folder / DEFINITIONS)


def _source(go: Path, env: dict[str, str], *, changed: bool) -> Path:
    """Where to build: our folder, or a copy of it beside modules that we change."""
    if not changed:
        return SOURCE
    copy = golang.ROOT / "source"
    store.remove_tree(copy)
    shutil.copytree(SOURCE, copy)
    traefik_source.place(go, env, copy)
    return copy


def _keep(build: Build, made: Path, target: Path) -> None:
    target.mkdir()
    for package in build.packages:
        shutil.move(made / _program(package), target / (build.rename or _program(package)))


def _program(package: str) -> str:
    """What `go build` calls it: the last element, less a major version."""
    *_, before, last = ["", *package.split("/")]
    return before if re.fullmatch(r"v\d+", last) else last


@contextmanager
def _announce(folder: Path, log: Path, packages: int, say: Say) -> Iterator[None]:
    """Tell of each program as it appears, and how many packages are compiled: `-v` writes a line for each."""
    stop, start = threading.Event(), time.monotonic()

    def look() -> None:
        seen: set[str] = set()
        said = start
        while True:
            ended = stop.wait(2)
            for path in sorted(folder.iterdir()):
                if path.name not in seen:
                    seen.add(path.name)
                    said = time.monotonic()
                    say(f"{path.name} after {duration(said - start)} ({path.stat().st_size >> 20} MiB)")
            if ended:
                return
            if time.monotonic() - said >= EVERY and log.exists():
                said = time.monotonic()
                say(f"{log.read_text(errors='replace').count(chr(10)):,} of {packages:,} packages begun")

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


def _needed(which: frozenset[str]) -> list[Build]:
    return [build for build in BUILDS if build.name in which - source.replaced()]


def _missing(which: frozenset[str]) -> list[Build]:
    return [build for build in _needed(which) if not store.is_built(build.name, store.key_of(_inputs(build)))]


def _done(which: frozenset[str]) -> bool | str:
    if _missing(which):
        return False
    for build in _needed(which):
        store.touch(build.name, store.key_of(_inputs(build)))
    spared = [build.name for build in BUILDS if build.name in which & source.replaced()]
    return f"already there; {', '.join(spared)} come with {source.IMAGE_NAME}" if spared else True


def kubernetes_is_built() -> bool:
    build = next(b for b in BUILDS if b.name == "kubernetes")
    return store.is_built(build.name, store.key_of(_inputs(build)))


def steps() -> list[Step]:
    nodes = frozenset(build.name for build in BUILDS) - {TRAEFIK}
    return [_step("programs", TITLE, nodes), replace(_step(TRAEFIK, ASIDE, frozenset({TRAEFIK})), aside=True)]


def _step(name: str, title: str, which: frozenset[str]) -> Step:
    return Step(name, title, partial(_done, which), partial(_compile, which, name), warm=partial(golang.begun, name))
