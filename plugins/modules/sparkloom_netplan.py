#!/usr/bin/python
from __future__ import annotations

import time
from pathlib import Path

from ansible.module_utils import sparkloom_backup as backup
from ansible.module_utils import sparkloom_generated as generated
from ansible.module_utils import sparkloom_links as links
from ansible.module_utils import sparkloom_networkd as networkd
from ansible.module_utils import sparkloom_rollback as rollback
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_netplan
short_description: Keep one netplan file and the links that it describes
description:
  - Validates the file together with the others of the node in a scratch root, writes it with mode 0600, and brings to
    life what it changes. Other interfaces are not touched, and neither networkd nor NetworkManager is restarted.
  - Applies again when a link that is on the host differs from what the file says, or has addresses beside its own.
    An interface that the file says nothing of any more loses the address that it gave.
  - While C(rollback_after) seconds run, a timer stands ready to put the previous files back. C(state=proven) stops it,
    since reaching the node once more is the proof that it waited for.
  - The node keeps the files and the links as they were before the first change; C(state=absent) puts that back, under
    the same timer.
options:
  path: {type: path, required: true, description: [The file.]}
  content: {type: str, default: "", description: [The whole file; not used by state=absent.]}
  expect: {type: list, elements: dict, default: [], description: ["Interface, mtu and cidr of each link."]}
  subnets: {type: list, elements: str, default: [], description: [Networks in which a port itself has no address.]}
  adopt:
    type: dict
    default: {}
    description: ["What goes of other definitions: C(files) with their new content, none to remove, and C(addresses)."]
  rollback_after: {type: int, default: 90, description: [Seconds until the previous files come back.]}
  state:
    type: str
    choices: [present, absent, proven]
    default: present
    description: [Whether the file is wanted; proven keeps what the last change left.]
"""

SETTLE_SECONDS = 20
Changes = dict  # path -> new content, none for a file that goes


def proven(module: AnsibleModule, path: Path) -> None:
    """Stop the timer; after an undo nothing is left to remember."""
    rollback.proven(module)
    ours = [path, *adopted(path)]
    if all(backup.matches_file(file) for file in ours):
        for kind in ("links", "adopted"):
            backup.forget(kind, str(path))
        for file in ours:
            backup.forget("file", str(file))


def adopted(path: Path) -> list[Path]:
    """Files of others that were changed with ours."""
    return [Path(name) for name in (backup.load("adopted", str(path)) or {}).get("files", [])]


def remember(module: AnsibleModule, path: Path, interfaces: list[str]) -> None:
    taken = module.params["adopt"]
    files = [entry["path"] for entry in taken.get("files", [])]
    for name in (path, *files):
        backup.keep_file(Path(name))
    addresses = taken.get("addresses", [])
    links.remember(module, str(path), [*interfaces, *(entry["interface"] for entry in addresses)], addresses)
    kept = backup.load("adopted", str(path)) or {"files": [], "managed": []}
    managed = [*kept["managed"], *generated.of_network_manager(module, interfaces)]
    if files or managed:
        record = {"files": [*kept["files"], *files], "managed": managed}
        backup.save("adopted", str(path), {key: list(dict.fromkeys(value)) for key, value in record.items()})


def made(module: AnsibleModule, changes: Changes, interfaces: list[str]) -> dict:
    """The generated files that these changes are about; fails where netplan refuses them."""
    after, refusal = generated.generate(module, changes)
    if refusal:
        path = module.params["path"]
        module.fail_json(msg=f"netplan refuses the new {path}, nothing was changed: {refusal}")
    before, _ = generated.generate(module, {}) if changes else (after, "")
    return generated.pending(before, after, interfaces)


def apply(module: AnsibleModule, changes: Changes, interfaces: list[str], *, managed: list[str]) -> None:
    """Under the timer: the files, then on the rails alone what they say."""
    found = made(module, changes, interfaces)
    present = links.read(module)
    names = [name for name in interfaces if name in present]
    held = generated.of_network_manager(module, names)
    profiles = any("NetworkManager" in str(path) for path in (*changes, *found))
    back = [step.line for step in generated.steps(names, managed=held, profiles=profiles)]
    # A file that took a link down leaves it down when it goes; an address that was taken stays away.
    back += [f"ip link set dev {name} up" for name, link in present.items() if links.is_up(link)]
    taken = module.params["adopt"].get("addresses", [])
    back += [f"ip address add {entry['cidr']} dev {entry['interface']} || true" for entry in taken]
    rollback.keep(module, [*changes, *found])
    for path, content in changes.items():
        was = generated.read(path)
        generated.write(path, None if content is None else generated.File(content, was.mode if was else 0o600))
    for path, file in found.items():
        generated.write(path, file)
    rollback.arm(module, module.params["rollback_after"], back)
    networkd.put_back(module)
    unmanaged = [name for name in held if name not in managed]
    why = generated.run(module, generated.steps(names, managed=managed, unmanaged=unmanaged, profiles=profiles))
    # What a later reload of systemd's units writes anew, this networkd knows by these.
    networkd.hold(module)
    if why:
        seconds = module.params["rollback_after"]
        module.fail_json(msg=f"the rails took no change; what was before comes back within {seconds} s: {why}")


def settle(module: AnsibleModule, expect: list[dict], gone: list[dict]) -> None:
    """Give the links the time they need to come up, and take what stays on them and on those that are ours no more."""
    until = time.monotonic() + SETTLE_SECONDS
    subnets = module.params["subnets"]
    links.take(module, expect, subnets, [*module.params["adopt"].get("addresses", []), *gone])
    while links.differing(module, expect, subnets) and time.monotonic() < until:
        time.sleep(0.5)


def absent(module: AnsibleModule, path: Path) -> None:
    ours = [path, *adopted(path)]
    kept = backup.load("links", str(path))
    changed = kept is not None or not all(backup.matches_file(file) for file in ours)
    if changed and not module.check_mode:
        up = {name for name, link in links.read(module).items() if links.is_up(link)}
        changes = {file: backup.kept_content(file) for file in ours if not backup.matches_file(file)}
        managed = (backup.load("adopted", str(path)) or {}).get("managed", [])
        apply(module, changes, list(kept or {}), managed=managed)
        for file in ours:
            backup.restore_file(file, forget_it=False)
        links.restore(module, str(path), up)
    elif not module.check_mode:
        proven(module, path)
    module.exit_json(changed=changed)


def present(module: AnsibleModule, path: Path) -> None:
    expect, content = module.params["expect"], module.params["content"]
    before = path.read_text() if path.exists() else ""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    wrong = links.differing(module, expect, module.params["subnets"])
    taken = module.params["adopt"]
    changes: Changes = {path: content.encode()} if before != content else {}
    for entry in taken.get("files", []):
        changes[Path(entry["path"])] = None if entry["content"] is None else entry["content"].encode()
    result = {
        "changed": bool(changes or wrong or mode != 0o600 or taken.get("addresses")),
        "links": wrong,
        "drift": [{"what": str(path), "found": f"permissions {mode:04o}", "expected": "0600"}] if mode != 0o600 else [],
        "diff": [backup.diff(file, text(file), (new or b"").decode()) for file, new in changes.items()],
    }
    interfaces = [want["interface"] for want in expect]
    if changes and module.check_mode:
        made(module, changes, interfaces)
    if not result["changed"] and not module.check_mode:
        # Left by a run that was killed after its change: this run's connection is the proof that it waited for.
        proven(module, path)
    if result["changed"] and not module.check_mode:
        remember(module, path, interfaces)
        if mode != 0o600:
            path.chmod(0o600)
        apply(module, changes, interfaces, managed=[])
        settle(module, expect, links.left(before, expect))
    module.exit_json(**result)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "default": ""},
            "expect": {"type": "list", "elements": "dict", "default": []},
            "subnets": {"type": "list", "elements": "str", "default": []},
            "adopt": {"type": "dict", "default": {}},
            "rollback_after": {"type": "int", "default": 90},
            "state": {"type": "str", "choices": ["present", "absent", "proven"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    if module.params["state"] == "absent":
        absent(module, path)
    if module.params["state"] == "proven":
        proven(module, path)
        module.exit_json(changed=False)
    present(module, path)


if __name__ == "__main__":
    main()
