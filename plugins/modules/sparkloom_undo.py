#!/usr/bin/python
from __future__ import annotations

import shutil
from pathlib import Path

from ansible.module_utils import sparkloom_backup as backup
from ansible.module_utils import sparkloom_kernel as kernel
from ansible.module_utils import sparkloom_networkd as networkd
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import mounted

DOCUMENTATION = r"""
module: sparkloom_undo
short_description: Undo what this node remembers
description:
  - Puts back every file and kernel setting of which the node kept how it was, whichever role changed it. A unit that
    was not there before is stopped and disabled first.
  - Refused while something remembered is still in use by another part, named in C(first).
options:
  records: {type: bool, default: false, description: [Put back what the node remembers.]}
  first: {type: dict, default: {}, description: [Kind of a record to the advice given while one is kept.]}
  remove: {type: list, elements: path, default: [], description: [Files and folders that nobody but Sparkloom writes.]}
  empty: {type: list, elements: path, default: [], description: ["Folders that go when nothing is in them, in order."]}
"""

UNITS = Path("/etc/systemd/system")


def recorded(kind: str) -> list[Path]:
    """What the records of a kind are about."""
    names = [path.name.removeprefix(f"{kind}-").removesuffix(".json") for path in backup.FOLDER.glob(f"{kind}-*.json")]
    return [Path("/" + name.replace("!", "/")) for name in sorted(names)]


def new_units(files: list[Path]) -> list[str]:
    """Units that came with us: their file was not there before."""
    ours = [path for path in files if path.parent == UNITS and path.suffix != ".conf"]
    return [path.name for path in ours if "content" not in (backup.load("file", str(path)) or {})]


def settings() -> dict[str, str]:
    """Kernel settings as they were, where the key still exists and differs."""
    kept: dict[str, str] = {}
    for path in recorded("sysctl"):
        kept |= backup.load("sysctl", str(path)) or {}
    return {key: value for key, value in kept.items() if kernel.live(key) not in (None, value)}


def put_back(module: AnsibleModule, files: list[Path]) -> None:
    for unit in new_units(files):
        module.run_command(["systemctl", "disable", "--now", unit])
    refused = {key: why for key, value in settings().items() if (why := kernel.apply(key, value))}
    if refused:
        module.fail_json(msg=f"the kernel does not take back what it had: {refused}", refused=refused)
    # A file that came with its folder goes last, when the folder is empty.
    for path in sorted(files, key=lambda file: len((backup.load("file", str(file)) or {}).get("folders", ()))):
        backup.restore_file(path)
    for path in recorded("sysctl"):
        backup.forget("sysctl", str(path))
    if any(UNITS in path.parents for path in files):
        module.run_command(["systemctl", "daemon-reload"], check_rc=True)


def there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def take_away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def empty(folders: list[Path], dry: bool) -> list[Path]:
    """Those that nobody uses any more; one that holds something stays."""
    gone = []
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            gone.append(folder)
            if not dry:
                folder.rmdir()
    return gone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "records": {"type": "bool", "default": False},
            "first": {"type": "dict", "default": {}},
            "remove": {"type": "list", "elements": "path", "default": []},
            "empty": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    for kind, advice in module.params["first"].items():
        if held := recorded(kind):
            module.fail_json(msg=f"found {', '.join(map(str, held))} as it was changed; expected it undone: {advice}")
    files = recorded("file") if module.params["records"] else []
    keys = sorted(settings()) if module.params["records"] else []
    gone = [path for name in module.params["remove"] if there(path := Path(name))]
    folders = [path for path in gone if not path.is_symlink()]
    if held := [*mounted([str(path) for path in folders]), *(str(path) for path in folders if path.is_mount())]:
        module.fail_json(
            msg=f"found {', '.join(held)} mounted below what is removed; expected nothing there. Nothing was removed; "
            "unmount it and run this again"
        )
    if not module.check_mode:
        networkd.hold(module)
        put_back(module, files)
        for path in filter(there, gone):  # a folder that came with a file went with it
            take_away(path)
    gone += empty([Path(name) for name in module.params["empty"]], dry=module.check_mode)
    paths = [*files, *gone]
    diff = [backup.diff(path, f"{path}\n", "") for path in paths]
    module.exit_json(changed=bool(paths or keys), paths=[str(path) for path in paths], keys=keys, diff=diff)


if __name__ == "__main__":
    main()
