"""A Go toolchain that is new enough: the machine's, or one that an older Go or apt brings, kept in the cache."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import RackError, out, run
from testbed.base.steps import Say, Step

NEEDED = (1, 26)  # what Traefik asks for
FETCHED = "1.26.8"  # what is fetched when the machine has nothing new enough
SOURCE = names.REPO / "testbed" / "make" / "go"  # what is built, and from which versions
VERSIONS = (SOURCE / "go.mod", SOURCE / "go.sum")
ROOT = names.CACHE / "go"  # modules and build cache: a killed build goes on where it was
PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")  # where installers leave it, on PATH or not
SPACE_GIB = 10
# Nobody debugs these programs: what a debugger reads is a tenth of their compiler's work.
FLAGS = ("-trimpath", "-p", str(os.cpu_count() or 1), "-gcflags=all=-dwarf=false")
# A compiler lives for a second: what it collects of its memory is a quarter of its work. Collected is beyond this much.
COMPILER_MIB = 2048
KEEP = "SPARKLOOM_KEEP_GO"  # for whoever changes the Go programs or their versions


def environment(go: Path) -> dict[str, str]:
    return {
        "GOPATH": str(ROOT),
        "GOCACHE": str(ROOT / "build"),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "GOMAXPROCS": str(os.cpu_count() or 1),
        "GOGC": "off",
        "GOMEMLIMIT": f"{COMPILER_MIB}MiB",
        "PATH": f"{go.parent}:{os.environ.get('PATH', '')}",
    }


@dataclass(frozen=True)
class Module:
    """A source at Go's module proxy, with what go.sum would hold of it where no go.sum asks."""

    path: str
    version: str
    sum: str

    def fetch(self, go: Path, env: Mapping[str, str], where: Path) -> Path:
        """Its folder, when it is the one that was looked at."""
        asked = [go, "mod", "download", "-json", f"{self.path}@{self.version}"]
        module = json.loads(run(asked, env={**env, "GOSUMDB": "off"}, cwd=where).stdout)
        if module["Sum"] != self.sum:
            raise RackError(f"{self.path}@{self.version} has sum {module['Sum']}, expected {self.sum} (testbed/make)")
        return Path(module["Dir"])

    def copy(self, go: Path, env: Mapping[str, str], target: Path) -> Path:
        """Its files as a folder of our own, to change and to build in."""
        unused = shutil.ignore_patterns("*_test.go", "testdata", "vendor")
        shutil.copytree(self.fetch(go, env, target.parent), target, ignore=unused)
        run(["chmod", "-R", "u+w", target])
        return target


def found() -> Path | None:
    """A `go` of this machine that is new enough."""
    for candidate in (shutil.which("go"), *PLACES, _kept()):
        if candidate and version(Path(candidate)) >= NEEDED:
            return Path(candidate)
    return None


def find(say: Say) -> Path:
    """Path of a usable `go`, fetched when needed."""
    return found() or _fetch(say)


def version(go: Path) -> tuple[int, int]:
    if not go.exists():
        return (0, 0)
    text = run([go, "version"], env={"GOTOOLCHAIN": "local"}, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _kept() -> Path:
    return names.CACHE / f"toolchain-{FETCHED}" / "bin" / "go"


def _provide(say: Say) -> None:
    machine.require_space(names.CACHE, SPACE_GIB, "Go's module and build caches, removed when all is built")
    say(f"uses {find(say)}")


def _forget(say: Say) -> None:
    say(f"removing {ROOT} and the toolchain that was fetched ({KEEP}=1 in the environment keeps them)")
    for folder in (ROOT, _kept().parent.parent):
        store.remove_tree(folder)


def _forgotten() -> bool | str:
    if not ROOT.exists() and not _kept().exists():
        return True
    return f"kept, as {KEEP} is set" if os.environ.get(KEEP) else False


def steps_around(builds: list[Step]) -> list[Step]:
    """What comes before and after the builds: a toolchain, and the gigabytes that only builds need."""

    def all_built() -> bool:
        return all(step.done() for step in builds)

    title = f"finds Go {NEEDED[0]}.{NEEDED[1]} or newer, or fetches Go {FETCHED} (with apt-get's golang-go)"
    first = Step("go", title, lambda: "not needed: everything is built" if all_built() else False, _provide)
    last = Step("go-caches", "removes Go's caches: everything is built", _forgotten, _forget)
    return [first, *builds, last]


def begun(name: str) -> bool:
    """Whether this build began before with the caches that are there now; what it takes then says little."""
    return (ROOT / "begun" / name).exists()


def begin(name: str) -> None:
    (ROOT / "begun").mkdir(parents=True, exist_ok=True)
    (ROOT / "begun" / name).touch()


def _fetch(say: Say) -> Path:
    """Go's toolchains are modules: any older Go can download one from the module proxy this machine is set up for."""
    machine.require_root()
    if not shutil.which("go"):
        machine.apt_install(["golang-go", "ca-certificates"], say)
    old = shutil.which("go")
    if not old:
        raise RackError(f"found no Go, not even after apt-get install golang-go; install Go >= {NEEDED[0]}.{NEEDED[1]}")
    say(f"fetching Go {FETCHED} as a module (found {out([old, 'version'])})")
    module = f"golang.org/toolchain@v0.0.1-go{FETCHED}.linux-{machine.architecture()}"
    scratch = ROOT / "toolchain"
    env = {"GOPATH": str(scratch / "path"), "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw", "GO111MODULE": "on"}
    run([old, "mod", "download", module], env=env, cwd=_empty_module(scratch / "here"))
    tree = scratch / "path/pkg/mod" / module
    for folder in (tree / "bin", tree / "pkg/tool"):
        for path in folder.rglob("*"):
            path.chmod(0o755)  # older Go versions unpack modules without execute bits
    target = _kept().parent.parent
    store.remove_tree(target)
    tree.rename(target)
    store.remove_tree(scratch)
    if version(_kept()) < NEEDED:
        raise RackError(f"the toolchain in {target} does not run; remove that folder, or install Go by hand")
    return _kept()


def _empty_module(folder: Path) -> Path:
    """Old Go versions want to stand in a module for `mod download`, and refuse one in GOPATH itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module scratch\n")
    return folder
