"""Keep one netplan file and the links that it describes.

Validates the file together with the others of the node in a scratch root, writes it with mode 0600, and brings to
life what it changes. Other interfaces are not touched, and neither networkd nor NetworkManager is restarted. Applies
again when a link that is on the host differs from what the file says, or has addresses beside its own. An interface
that the file says nothing of any more loses the address that it gave. While `rollback_after` seconds run, a timer
stands ready to put the previous files back. `state=proven` stops it, since reaching the node once more is the proof
that it waited for. The node keeps the files and the links as they were before the first change; `state=absent` puts
that back, under the same timer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sparkloom.onnode.host import backup, generated, links, networkd, rollback
from sparkloom.onnode.host.backup import File
from sparkloom.onnode.task import Data, Task

SETTLE_SECONDS = 20
Changes = dict[Path, bytes | None]  # path -> new content, none for a file that goes


def proven(task: Task, path: Path) -> None:
    """Stop the timer; after an undo nothing is left to remember."""
    rollback.proven(task)
    ours = [path, *adopted(path)]
    if all(backup.matches_file(file) for file in ours):
        for kind in ("links", "adopted"):
            backup.forget(kind, str(path))
        for file in ours:
            backup.forget("file", str(file))


def adopted(path: Path) -> list[Path]:
    """Files of others that were changed with ours."""
    return [Path(name) for name in (backup.load("adopted", str(path)) or {}).get("files", [])]


def remember(task: Task, path: Path, interfaces: list[str]) -> None:
    taken = task.params["adopt"]
    files = [entry["path"] for entry in taken.get("files", [])]
    for name in (path, *files):
        backup.keep_file(Path(name))
    addresses = taken.get("addresses", [])
    links.remember(task, str(path), [*interfaces, *(entry["interface"] for entry in addresses)], addresses)
    kept = backup.load("adopted", str(path)) or {"files": [], "managed": []}
    managed = [*kept["managed"], *generated.of_network_manager(task, interfaces)]
    if files or managed:
        record = {"files": [*kept["files"], *files], "managed": managed}
        backup.save("adopted", str(path), {key: list(dict.fromkeys(value)) for key, value in record.items()})


def made(task: Task, changes: Changes, interfaces: list[str]) -> dict[Path, File | None]:
    """The generated files that these changes are about; fails where netplan refuses them."""
    after, refusal = generated.generate(task, changes)
    if refusal:
        path = task.params["path"]
        task.fail_json(msg=f"netplan refuses the new {path}, nothing was changed: {refusal}")
    before, _ = generated.generate(task, {}) if changes else (after, "")
    return generated.pending(before, after, interfaces)


def apply(task: Task, changes: Changes, interfaces: list[str], *, managed: list[str]) -> None:
    """Under the timer: the files, then on the rails alone what they say."""
    found = made(task, changes, interfaces)
    present = links.read(task)
    names = [name for name in interfaces if name in present]
    held = generated.of_network_manager(task, names)
    profiles = any("NetworkManager" in str(path) for path in (*changes, *found))
    back = [step.line for step in generated.steps(names, managed=held, profiles=profiles)]
    # A file that took a link down leaves it down when it goes; an address that was taken stays away.
    back += [f"ip link set dev {name} up" for name, link in present.items() if links.is_up(link)]
    taken = task.params["adopt"].get("addresses", [])
    back += [f"ip address add {entry['cidr']} dev {entry['interface']} || true" for entry in taken]
    rollback.keep(task, [*changes, *found])
    for path, content in changes.items():
        was = backup.read(path)
        backup.put(path, None if content is None else File(content, was.mode if was else 0o600))
    for path, file in found.items():
        backup.put(path, file)
    rollback.arm(task, task.params["rollback_after"], back)
    networkd.put_back(task)
    unmanaged = [name for name in held if name not in managed]
    why = generated.run(task, generated.steps(names, managed=managed, unmanaged=unmanaged, profiles=profiles))
    # What a later reload of systemd's units writes anew, this networkd knows by these.
    networkd.hold(task)
    if why:
        seconds = task.params["rollback_after"]
        task.fail_json(msg=f"the rails took no change; what was before comes back within {seconds} s: {why}")


def settle(task: Task, expect: list[Data], gone: list[Data]) -> None:
    """Give the links the time they need to come up, and take what stays on them and on those that are ours no more."""
    until = time.monotonic() + SETTLE_SECONDS
    subnets, gone = task.params["subnets"], [*task.params["adopt"].get("addresses", []), *gone]
    links.take(task, expect, subnets, gone)
    while links.differing(task, expect, subnets) and time.monotonic() < until:
        time.sleep(0.5)
        links.take(task, expect, subnets, gone)


def absent(task: Task, path: Path) -> None:
    ours = [path, *adopted(path)]
    kept = backup.load("links", str(path))
    changed = kept is not None or not all(backup.matches_file(file) for file in ours)
    if changed and not task.check_mode:
        up = {name for name, link in links.read(task).items() if links.is_up(link)}
        wrong = {file: backup.kept_file(file) for file in ours if not backup.matches_file(file)}
        changes = {file: was.content if was else None for file, was in wrong.items()}
        managed = (backup.load("adopted", str(path)) or {}).get("managed", [])
        apply(task, changes, list(kept or {}), managed=managed)
        for file in ours:
            backup.restore_file(file, forget_it=False)
        links.restore(task, str(path), up)
    elif not task.check_mode:
        proven(task, path)
    task.exit_json(changed=changed)


def present(task: Task, path: Path) -> None:
    expect, content = task.params["expect"], task.params["content"]
    was = backup.read(path) or File(b"", 0o600)
    before, mode = shown(was), was.mode
    wrong = links.differing(task, expect, task.params["subnets"])
    taken = task.params["adopt"]
    changes: Changes = {path: content.encode()} if before != content else {}
    for entry in taken.get("files", []):
        changes[Path(entry["path"])] = None if entry["content"] is None else entry["content"].encode()
    result = {
        "changed": bool(changes or wrong or mode != 0o600 or taken.get("addresses")),
        "links": wrong,
        "drift": [{"what": str(path), "found": f"permissions {mode:04o}", "expected": "0600"}] if mode != 0o600 else [],
        "diff": [backup.diff(file, shown(backup.read(file)), (new or b"").decode()) for file, new in changes.items()],
    }
    interfaces = [want["interface"] for want in expect]
    if changes and task.check_mode:
        made(task, changes, interfaces)
    if not result["changed"] and not task.check_mode:
        # Left by a run that was killed after its change: this run's connection is the proof that it waited for.
        proven(task, path)
    if result["changed"] and not task.check_mode:
        remember(task, path, interfaces)
        if mode != 0o600:
            path.chmod(0o600)
        apply(task, changes, interfaces, managed=[])
        settle(task, expect, links.left(before, expect))
    task.exit_json(**result)


def shown(file: File | None) -> str:
    return file.content.decode() if file else ""


def main(
    task: Task,
    path: Path,  # the file
    content: str = "",  # the whole file; not used by state=absent
    expect: Sequence[Data] = (),  # interface, mtu and cidr of each link
    subnets: Sequence[str] = (),  # networks in which a port itself has no address
    # What goes of other definitions: `files` with their new content, none to remove, and `addresses`.
    adopt: Mapping[str, Any] = {},
    rollback_after: int = 90,  # seconds until the previous files come back
    # Whether the file is wanted; proven keeps what the last change left.
    state: Literal["present", "absent", "proven"] = "present",
) -> None:
    if state == "absent":
        absent(task, path)
    if state == "proven":
        proven(task, path)
        task.exit_json()
    present(task, path)
