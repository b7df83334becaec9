"""What the virtual machines are made from: QEMU itself, unpacked beside this system, and the guest's packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testbed.base import machine, store, vm_names
from testbed.base.shell import RackError, run
from testbed.base.steps import Say, Step, artefact

RECIPE = "1"  # raise to rebuild
QEMU, GUEST = "vm-qemu", "vm-packages"
LOG = vm_names.CACHE / "logs" / "vm.log"


def mirror() -> str:
    """A Debian mirror: the machine's own, or on another distribution the one that SPARKLOOM_VM_MIRROR vm_names."""
    named = os.environ.get("SPARKLOOM_VM_MIRROR")
    if named:
        return named
    system = machine.os_release().get("ID", "")
    if system != "debian":
        raise RackError(
            f"found a machine with {system or 'an unknown system'}, expected Debian, whose mirror also holds "
            f"{vm_names.SUITE}; set SPARKLOOM_VM_MIRROR to the address of a Debian mirror that you can reach"
        )
    return machine.apt_source()[0]


def _bootstrap(target: Path, packages: list[str], say: Say, *options: str) -> None:
    # The kernel's own first file system is not used, and making it takes half a minute; a tree that is thrown away
    # when a build is killed needs no waiting for the disk either.
    quick = {"INITRD": "No", "DPKG_FORCE": "unsafe-io"}
    chosen = [*options, f"--include={','.join(packages)}"]
    machine.bootstrap(vm_names.SUITE, target, mirror(), chosen, say, LOG, quick)


# --- QEMU ---------------------------------------------------------------------------------------------------


def _qemu_inputs() -> list[store.Part]:
    return [RECIPE, vm_names.SUITE, *vm_names.QEMU_PACKAGES]


def _build_qemu(work: Path, say: Say) -> None:
    LOG.unlink(missing_ok=True)
    say(f"downloading QEMU of {vm_names.SUITE}")
    fetched, tree = work / "fetched", work / "tree"
    _bootstrap(fetched, list(vm_names.QEMU_PACKAGES), say, "--download-only")
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    archives = sorted((fetched / "var/cache/apt/archives").glob("*.deb"))
    say(f"unpacking {len(archives)} packages; this system's own stay as they are")
    for archive in archives:
        run(["dpkg-deb", "--extract", archive, tree])
    for name in ("usr/share/doc", "usr/share/locale", "usr/share/man"):
        store.remove_tree(tree / name)
    store.remove_tree(fetched)
    (work / "version").write_text(run([*_program(tree, "qemu-system-x86_64"), "--version"]).stdout.splitlines()[0])


def _program(tree: Path, name: str) -> list[str]:
    """A program of the tree with the tree's own loader and libraries: no chroot, nothing mounted."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    return [
        str(tree / "usr/lib64/ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(tree / "usr/bin" / name),
    ]


def qemu_tree() -> Path:
    return store.place(QEMU, store.key_of(_qemu_inputs())) / "tree"


def program(name: str) -> list[str]:
    return _program(qemu_tree(), name)


# --- the guest's packages -----------------------------------------------------------------------------------


def packages() -> list[str]:
    lines = (line for line in vm_names.PACKAGES.read_text().splitlines() if not line.startswith("#"))
    return [word for line in lines for word in line.split()]


def guest_inputs() -> list[store.Part]:
    return [RECIPE, vm_names.SUITE, vm_names.PACKAGES]


def _build_guest(work: Path, say: Say) -> None:
    say(f"bootstrapping {vm_names.SUITE} with {len(packages())} packages and what they need")
    tree = work / "tree"
    _bootstrap(tree, packages(), say)
    for name in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(tree / name, ignore_errors=True)


def guest_tree() -> Path:
    return store.place(GUEST, store.key_of(guest_inputs())) / "tree"


def steps() -> list[Step]:
    return [
        artefact(QEMU, f"QEMU of Debian {vm_names.SUITE}, unpacked into the cache", _qemu_inputs, _build_qemu),
        artefact(GUEST, f"a Debian {vm_names.SUITE} with kernel, netplan and RDMA tools", guest_inputs, _build_guest),
    ]
