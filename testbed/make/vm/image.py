"""The machines' disk: the packages' tree with the test bed's files, its kernel, and a first file system of our own."""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed.base import machine, store, vm_names
from testbed.base.shell import RackError, run
from testbed.base.steps import Say, Step, artefact
from testbed.make.vm import trees

NAME = "vm-image"
RECIPE = "2"  # raise to rebuild
DISK_SIZE = "8G"
# Not wanted on a machine that lives for an hour: timers, and waits for networks that are not there.
MASKED = (
    "systemd-networkd-wait-online.service", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer",
    "e2scrub_reap.service", "fstrim.timer", "dpkg-db-backup.timer", "systemd-firstboot.service", "ldconfig.service",
    "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount",
    "systemd-pstore.service", "systemd-tpm2-setup.service", "systemd-tpm2-setup-early.service", "ssh.socket",
    "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@configfs.service", "modprobe@fuse.service",
    "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount",
)  # fmt: skip
# As on a Spark with a desktop, where a test wants it; it takes every port that nobody else names.
STARTED_BY_TESTS = ("NetworkManager.service", "NetworkManager-wait-online.service", "NetworkManager-dispatcher.service")


def _inputs() -> list[store.Part]:
    recipe = [RECIPE, DISK_SIZE, *MASKED, *STARTED_BY_TESTS]
    return [*recipe, *trees.guest_inputs(), vm_names.GUEST_FILES, vm_names.VM_DIR / "guest-init", vm_names.MODULES]


def wanted_modules(kind: str) -> list[str]:
    lines = (line.split() for line in vm_names.MODULES.read_text().splitlines() if line and not line.startswith("#"))
    return [module for first, *modules in lines if first == kind for module in modules]


def _build(work: Path, say: Say) -> None:
    machine.apt_install(["e2fsprogs", "cpio", "xz-utils", "openssh-client"], say)
    tree = work / "tree"
    say("copying the packages' tree")
    run(["cp", "-a", "--reflink=auto", trees.guest_tree(), tree])
    kernel = _kernel(tree)
    say(f"kernel {kernel}: keeping {len(wanted_modules('boot') + wanted_modules('keep'))} modules and their needs")
    order = _modules(tree, kernel)
    _first_files(tree, kernel, order, work)
    shutil.copy2(tree / f"boot/vmlinuz-{kernel}", work / "vmlinuz")
    say("adding the test bed's files, a throw-away key, users")
    _settle(tree, work)
    say(f"writing a disk of {DISK_SIZE} (sparse)")
    disk = work / "disk.raw"
    run(["truncate", "-s", DISK_SIZE, disk])
    options = ["-O", "^has_journal,^metadata_csum_seed", "-E", "lazy_itable_init=1"]
    run(["mkfs.ext4", "-q", *options, "-d", tree, disk], log=trees.LOG)
    store.remove_tree(tree)


def _kernel(tree: Path) -> str:
    found = sorted(path.name for path in (tree / "usr/lib/modules").iterdir())
    if len(found) != 1:
        raise RackError(f"found the kernels {found} in {tree}, expected one; {vm_names.PACKAGES} names it")
    return found[0]


def _modules(tree: Path, kernel: str) -> list[Path]:
    """Leave out all modules but the wanted; gives those to load before the root file system, in order."""
    boot = _needs(tree, kernel, wanted_modules("boot"))
    keep = {*boot, *_needs(tree, kernel, wanted_modules("keep"))}
    folder = tree / "usr/lib/modules" / kernel
    for path in list(folder.rglob("*.ko*")):
        if path not in keep:
            path.unlink()
    # software emulation takes long to unpack them, so it is done here
    packed = [str(path) for path in sorted(keep) if path.suffix == ".xz"]
    run(["xz", "--decompress", "--threads=1", *packed])
    run(["chroot", tree, "depmod", kernel])
    return [path.with_suffix("") if path.suffix == ".xz" else path for path in boot]


def _needs(tree: Path, kernel: str, modules: list[str]) -> list[Path]:
    command: list[str | Path] = ["chroot", tree, "modprobe", "--set-version", kernel, "--show-depends"]
    files: dict[Path, None] = {}
    for module in modules:
        for line in run([*command, module]).stdout.splitlines():
            if line.startswith("insmod "):
                path = line.split()[1].removeprefix("/lib/").removeprefix("/usr/lib/")
                files[tree / "usr/lib" / path] = None
    return list(files)


def _first_files(tree: Path, kernel: str, order: list[Path], work: Path) -> None:
    """The kernel's first file system: busybox and the modules of the disk. It needs no udev, so it is done at once."""
    base = work / "first"
    for name in ("bin", "modules", "proc", "sys", "dev", "root"):
        (base / name).mkdir(parents=True)
    shutil.copy2(tree / "usr/bin/busybox", base / "bin/busybox")
    (base / "bin/sh").symlink_to("busybox")
    shutil.copy2(vm_names.VM_DIR / "guest-init", base / "init")
    for path in order:
        shutil.copy2(path, base / "modules" / path.name)
    (base / "modules/order").write_text("".join(f"{path.name}\n" for path in order))
    files = "\n".join(str(p.relative_to(base)) for p in sorted(base.rglob("*")))
    packed = work / "initrd"
    run(["cpio", "--quiet", "-o", "-H", "newc", "-O", packed], cwd=base, stdin=files + "\n")
    store.remove_tree(base)


def _settle(tree: Path, work: Path) -> None:
    for path in sorted(p for p in vm_names.GUEST_FILES.rglob("*") if p.is_file()):
        target = tree / path.relative_to(vm_names.GUEST_FILES)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        # the checkout's umask and owner are not the machine's
        target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o600 if "netplan" in target.parts else 0o644)
    (tree / "etc/sudoers.d/nvidia").chmod(0o440)
    (tree / "etc/machine-id").write_text("")
    (tree / "etc/hostname").unlink(missing_ok=True)
    (tree / "etc/resolv.conf").unlink(missing_ok=True)
    (tree / "etc/fstab").write_text("/dev/vda / ext4 defaults,noatime 0 1\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(f"127.0.1.1 spark{n}\n" for n in range(1, 5)))
    run(["chroot", tree, "useradd", "--create-home", "--shell", "/bin/bash", "nvidia"])
    run(["chroot", tree, "systemctl", "enable", "systemd-networkd", "serial-getty@ttyS0"])
    run(["chroot", tree, "systemctl", "mask", *MASKED])
    run(["chroot", tree, "systemctl", "enable", "ssh.service"])
    run(["chroot", tree, "systemctl", "disable", *STARTED_BY_TESTS])
    _keys(tree, work)


def _keys(tree: Path, work: Path) -> None:
    """A throw-away pair for logging in, and the machines' own: both live in the cache and open nothing else."""
    for name in ("id", "host"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sparkloom-testbed", "-f", work / name])
    for path in (tree / "etc/ssh").glob("ssh_host_*"):
        path.unlink()
    for suffix, mode in (("", 0o600), (".pub", 0o644)):
        target = tree / f"etc/ssh/ssh_host_ed25519_key{suffix}"
        shutil.copy2(work / f"host{suffix}", target)
        target.chmod(mode)
    for home in ("root", "home/nvidia"):
        folder = tree / home / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copy2(work / "id.pub", folder / "authorized_keys")
        (folder / "authorized_keys").chmod(0o600)
    run(["chroot", tree, "chown", "-R", "nvidia:nvidia", "/home/nvidia"])


def place() -> Path:
    return store.place(NAME, store.key_of(_inputs()))


def inputs() -> list[store.Part]:
    return _inputs()


def steps() -> list[Step]:
    return [artefact(NAME, "the virtual machines' disk", _inputs, _build)]
