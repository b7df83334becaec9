"""Root file systems: the node's (bootstrapped from the machine's own distribution), and pods' small base."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import RackError, out, run
from testbed.base.steps import Say, Step, artefact

PACKAGES = names.KIND_DIR / "packages.txt"
BASE_LIST = names.KIND_DIR / "base.txt"
TRIM = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
RECIPE = "1"  # raise to rebuild


def packages() -> list[str]:
    lines = (line for line in PACKAGES.read_text().splitlines() if not line.startswith("#"))
    return [word for line in lines for word in line.split()]


# --- the node's packages -----------------------------------------------------------------------------------


def _rootfs_inputs() -> list[store.Part]:
    release = machine.os_release()
    return [RECIPE, release.get("ID", ""), release.get("VERSION_CODENAME", ""), machine.architecture(), PACKAGES]


def _build_rootfs(work: Path, say: Say) -> None:
    mirror, suite, components = machine.apt_source()
    tree = work / "rootfs"
    say(f"bootstrapping {suite} with {len(packages())} packages")
    log = names.CACHE / "logs" / "rootfs.log"
    log.unlink(missing_ok=True)
    options = [f"--components={components}", f"--include={','.join(packages())}"]
    machine.bootstrap(suite, tree, mirror, options, say, log)
    say("trimming")
    for name in TRIM:
        store.remove_tree(tree / name)
        (tree / name).mkdir(parents=True)
    store.remove_tree(tree / "dev")
    (tree / "dev").mkdir()
    for name in ("etc/resolv.conf", "etc/hostname", "etc/machine-id"):
        (tree / name).unlink(missing_ok=True)


# --- the base of pods' images -------------------------------------------------------------------------------


def _build_base(work: Path, say: Say) -> None:
    source, target = rootfs(), work / "rootfs"
    target.mkdir()
    _skeleton(target)
    wanted = [line for line in BASE_LIST.read_text().split("\n") if line and not line.startswith("#")]
    files = sorted({p for pattern in wanted for p in source.glob(pattern.lstrip("/"))})
    if not files:
        raise RackError(f"nothing in {source} matches {BASE_LIST}")
    objects = [f for top in files for f in ([top] if not top.is_dir() else top.rglob("*")) if _is_elf(f)]
    say(f"copying {len(files)} programs and folders with the libraries of {len(objects)} objects")
    for path in [*files, *libraries(source, objects)]:
        copy_into(source, target, path)


def _skeleton(target: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (target / "usr" / name).mkdir(parents=True)
        (target / name).symlink_to(f"usr/{name}")
    for name in ("etc", "proc", "sys", "dev", "run", "var", "tmp", "root", "opt"):
        (target / name).mkdir()
    (target / "tmp").chmod(0o1777)
    # the Multus daemon opens /var/run/netns/… over its mount of /run/netns
    (target / "var/run").symlink_to("/run")
    (target / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (target / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (target / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries(root: Path, objects: Iterable[Path]) -> list[Path]:
    """Shared libraries (with the loader) that these objects of a root file system load."""
    inside = ["/" + str(path.relative_to(root)) for path in objects]
    text = run(["chroot", root, "ldd", *inside], check=False).stdout if inside else ""
    libraries = set(re.findall(r"(/\S+\.so\S*) \(0x", text))
    return sorted(root / name.lstrip("/") for name in libraries)


def add_libraries(tree: Path, *programs: Path) -> None:
    """What wheels in a tree and its programs ask for, and the small base has no other use for (libpthread, libdl)."""
    system, own = rootfs(), base()
    asked: set[str] = set()
    for module in (*tree.rglob("*.so*"), *programs):
        asked |= set(re.findall(r"^\s*(lib\S+)", out(["ldd", module], check=False), re.MULTILINE))
    for library in (found for name in sorted(asked) for found in system.glob(f"usr/lib/*-linux-gnu/{name}")):
        if not (own / library.relative_to(system)).exists():
            copy_into(system, tree, library)


def add_program(tree: Path, name: str) -> None:
    """One more program of the node's system, with the libraries that the base has not."""
    system, own = rootfs(), base()
    for path in [system / name, *libraries(system, [system / name])]:
        if not (own / path.relative_to(system)).exists():
            copy_into(system, tree, path)


def copy_into(source: Path, target: Path, path: Path) -> None:
    """Copy a file or folder of one root file system to the same place of another, following its links."""
    relative = _merged(path.relative_to(source))
    origin, goal = source / relative, target / relative
    if goal.exists() or goal.is_symlink():
        return
    goal.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_symlink():
        link = origin.readlink()
        goal.symlink_to(link)
        aim = source / str(link).lstrip("/") if link.is_absolute() else origin.parent / link
        if aim.exists():
            copy_into(source, target, aim.parent.resolve() / aim.name)
    elif origin.is_dir():
        shutil.copytree(
            origin, goal, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib")
        )
    else:
        shutil.copy2(origin, goal)


def _merged(relative: Path) -> Path:
    """/bin/x is /usr/bin/x on a merged system."""
    return Path("usr", relative) if relative.parts[0] in ("bin", "sbin", "lib", "lib64") else relative


# --- steps and places -----------------------------------------------------------------------------------------


def rootfs() -> Path:
    return store.place("rootfs", store.key_of(_rootfs_inputs())) / "rootfs"


def base_inputs() -> list[store.Part]:
    return [RECIPE, *_rootfs_inputs(), BASE_LIST]


def base() -> Path:
    """A minimal tree with Python, a shell and network tools: the lowest layer of every pod image here."""
    return store.place("base", store.key_of(base_inputs())) / "rootfs"


def steps() -> list[Step]:
    distro = machine.os_release().get("PRETTY_NAME", "this distribution")
    title = f"bootstraps a node's system ({distro}) with debootstrap, which it installs if missing"
    system = artefact("rootfs", title, _rootfs_inputs, _build_rootfs)
    layer = artefact("base", "picks the small base layer of pods' images out of it", base_inputs, _build_base)
    return [replace(system, aside=True), replace(layer, after=(system.name,))]
