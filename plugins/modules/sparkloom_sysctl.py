#!/usr/bin/python
from __future__ import annotations

from pathlib import Path

from ansible.module_utils import sparkloom_backup as backup
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_kernel import apply, live, overruled

DOCUMENTATION = r"""
module: sparkloom_sysctl
short_description: Keep kernel settings, now and after a reboot
description:
  - Writes one file below /etc/sysctl.d and sets what differs in the running kernel.
  - A key that this kernel does not have, or does not let this machine set, is reported in C(refused) and not a failure.
  - A file that sets one of them otherwise at every boot, because its name comes later, is warned of by its name.
  - With C(remember) the node keeps what was there before, and C(state=absent) puts exactly that back.
options:
  path: {type: path, required: true, description: [The file that keeps them.]}
  values: {type: dict, default: {}, description: [Key to value; not used by state=absent.]}
  remember: {type: bool, default: false, description: ["Keep file and values as they were before, for state=absent."]}
  state:
    type: str
    choices: [present, absent]
    default: present
    description: [Absent puts back what C(remember) kept; a key that has gone since then is left out.]
"""


def remember(path: Path, now: dict) -> None:
    """The file and the values before the first change; keys that a later plan adds join them."""
    backup.keep_file(path)
    kept = backup.load("sysctl", str(path)) or {}
    added = {key: value for key, value in now.items() if value is not None and key not in kept}
    if added:
        backup.save("sysctl", str(path), {**kept, **added})


def restore(module: AnsibleModule, path: Path) -> None:
    kept = backup.load("sysctl", str(path)) or {}
    differing = [key for key, value in kept.items() if live(key) not in (None, value)]
    changed = backup.holds_file(path) or bool(kept)
    if not module.check_mode:
        refused = {key: reason for key in differing if (reason := apply(key, kept[key]))}
        if refused:
            module.fail_json(msg=f"the kernel does not take back what it had: {refused}", refused=refused)
        backup.restore_file(path)
        backup.forget("sysctl", str(path))
    module.exit_json(changed=changed, keys=sorted(differing))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "values": {"type": "dict", "default": {}},
            "remember": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    if module.params["state"] == "absent":
        restore(module, path)
    present(module, path)


def present(module: AnsibleModule, path: Path) -> None:
    wanted = {key: " ".join(str(value).split()) for key, value in module.params["values"].items()}
    content = "# Written by sparkloom.\n" + "".join(f"{key} = {value}\n" for key, value in sorted(wanted.items()))
    before = path.read_text() if path.exists() else ""
    now = {key: live(key) for key in wanted}
    differing = [key for key, value in wanted.items() if now[key] is not None and now[key] != value]
    refused = {key: "this kernel does not have it" for key in wanted if now[key] is None}
    if not module.check_mode:
        if module.params["remember"] and (before != content or differing):
            remember(path, now)
        # the kernel first: a run that is killed in between leaves no file that promises what is not so
        reasons = {key: apply(key, wanted[key]) for key in differing}
        refused |= {key: reason for key, reason in reasons.items() if reason}
        if before != content:
            backup.write(path, content, 0o644)
    for key, (place, value) in overruled(path, wanted).items():
        module.warn(
            f"{place} sets {key} to {value} after {path} at every boot, expected {wanted[key]}: "
            "remove that line, or give the value that is meant in the inventory"
        )
    changed = sorted(set(differing) - set(refused))
    module.exit_json(
        changed=before != content or bool(changed),
        keys=changed,
        refused=refused,
        drift=[{"what": key, "found": now[key], "expected": wanted[key]} for key in changed],
        diff=[backup.diff(path, before, content)] if before != content else [],
    )


if __name__ == "__main__":
    main()
