"""Netplan's files brought to life on the interfaces that a change is about, and on no other.

`netplan apply` writes every generated file anew, reloads every interface and restarts NetworkManager: the way to the
node goes with it. Here netplan generates in scratch roots, from its files as they are and as they are to be. What
differs between the two, and what describes a rail, is copied to /run; every other file there keeps its inode, so that
networkd leaves those links alone when it reads again.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkloom.onnode.host.backup import File, put, read
from sparkloom.onnode.task import Task

ROOT = Path("/")
SOURCES = ("lib/netplan", "etc/netplan", "run/netplan")
# What netplan generates for one interface, and the two files in which it tells NetworkManager what is not its own.
GENERATED = (
    "run/systemd/network/*netplan-*",
    "run/NetworkManager/system-connections/netplan-*",
    "run/NetworkManager/conf.d/*",
    "run/udev/rules.d/*netplan*",
)


@dataclass(frozen=True)
class Step:
    """A command, and the one that is tried when it fails; without that a failure is passed over."""

    argv: tuple[str, ...]
    otherwise: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return f"{shlex.join(self.argv)} || {shlex.join(self.otherwise or ('true',))}"


def generate(task: Task, changes: Mapping[Path, bytes | None]) -> tuple[dict[str, File], str]:
    """What netplan makes of the node's files with these changes, by path below /; or why it refuses."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for source in SOURCES:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, root / source)
        for path, content in changes.items():
            put(root / path.relative_to(ROOT), None if content is None else File(content, 0o600))
        code, out, err = task.run_command(["netplan", "generate", "--root-dir", name])
        if code:
            return {}, (err or out).strip().replace(name, "")
        found = {str(path.relative_to(root)): path for path in _generated(root)}
        return {key: file for key, path in found.items() if (file := read(path))}, ""


def _generated(root: Path) -> Iterator[Path]:
    return (path for pattern in GENERATED for path in sorted(root.glob(pattern)) if path.is_file())


def pending(before: Mapping[str, File], after: Mapping[str, File], rails: Iterable[str]) -> dict[Path, File | None]:
    """The generated files that the change is about and that are not in /run as they should be."""
    live = {str(path.relative_to(ROOT)) for path in _generated(ROOT)}
    marks = tuple(f"netplan-{rail}." for rail in rails)
    mine = {key for key in live | set(after) if any(mark in f"{key}." for mark in marks)}
    changed = {key for key in set(before) | set(after) if before.get(key) != after.get(key)}
    wanted = {ROOT / key: after.get(key) for key in sorted(mine | changed)}
    return {path: file for path, file in wanted.items() if _content(read(path)) != _content(file)}


def _content(file: File | None) -> bytes | None:
    return file.content if file else None


def steps(
    rails: Iterable[str], *, managed: Iterable[str] = (), unmanaged: Iterable[str] = (), profiles: bool = False
) -> list[Step]:
    """What makes networkd, and NetworkManager where it runs, take up the generated files for these links.

    `managed` are handed to NetworkManager, `unmanaged` taken from it at once: it reads its configuration at its start.
    `profiles` says that some of its profiles came or went.
    """
    names = tuple(rails)
    found = [Step(("udevadm", "control", "--reload"))]
    found += [Step(("udevadm", "trigger", "--action=change", "--settle", f"/sys/class/net/{name}")) for name in names]
    found += [Step(("nmcli", "device", "set", name, "managed", "no")) for name in unmanaged]
    found += [Step(("nmcli", "connection", "reload"))] if profiles else []
    # Only where networkd does not run, or cannot be asked.
    found += [Step(("networkctl", "reload"), ("systemctl", "restart", "systemd-networkd.service"))]
    # A link that has just come may not be known yet.
    again = "sleep 1; networkctl reconfigure {} || true"
    found += [Step(("networkctl", "reconfigure", name), ("sh", "-c", again.format(name))) for name in names]
    return found + [Step(("nmcli", "device", "set", name, "managed", "yes")) for name in managed]


def of_network_manager(task: Task, names: Iterable[str]) -> list[str]:
    """Those of the links that NetworkManager looks after now; none where it does not run."""
    code, out, _ = attempt(task, ("nmcli", "--terse", "--fields", "DEVICE,STATE", "device"))
    states = dict(line.rsplit(":", 1) for line in out.splitlines() if ":" in line) if code == 0 else {}
    return [name for name in names if states.get(name, "unmanaged") not in ("unmanaged", "")]


def attempt(task: Task, argv: Sequence[str]) -> tuple[int, str, str]:
    """A program that is not there is one that failed."""
    if shutil.which(argv[0]) is None:
        return 127, "", f"no {argv[0]}"
    return task.run_command(list(argv))


def run(task: Task, found: Iterable[Step]) -> str:
    """Why it failed, if it did."""
    for step in found:
        code, out, err = attempt(task, step.argv)
        if code and step.otherwise:
            code, out, err = attempt(task, step.otherwise)
            if code:
                return f"{shlex.join(step.otherwise)}: {(err or out).strip()}"
    return ""
