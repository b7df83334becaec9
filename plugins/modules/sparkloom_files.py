#!/usr/bin/python
from __future__ import annotations

import base64
import hashlib
import stat
from pathlib import Path

from ansible.module_utils import sparkloom_backup as backup
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_files
short_description: Write several small files in one run
description:
  - Writes root-owned files whose content the controller rendered; atomic, with check mode and diff.
  - With C(remember) the node keeps what was there before the first change, and C(state=absent) puts exactly that back.
options:
  files:
    type: list
    elements: dict
    required: true
    description: [What to write.]
    suboptions:
      path: {type: path, required: true, description: [Where.]}
      content: {type: str, default: "", description: [The whole file; not used by state=absent.]}
      src: {type: str, description: ["In place of content; a file of the role's C(files), read on the controller."]}
      program: {type: str, description: ["In place of content; a program of ours, packed on the controller."]}
      encoding: {type: str, choices: [text, base64], default: text, description: [How the content is given.]}
      mode: {type: str, default: "0644", description: [Octal permissions.]}
  secrets: {type: dict, default: {}, description: ["Path to content of more files; 0600, and never shown."]}
  remember: {type: bool, default: false, description: ["Keep what was there before, for state=absent."]}
  state:
    type: str
    choices: [present, absent]
    default: present
    description: [Absent puts back what C(remember) kept; a file without such a record is left alone.]
"""

ENTRY = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "default": ""},
    "src": {"type": "str"},
    "program": {"type": "str"},
    "encoding": {"type": "str", "choices": ["text", "base64"], "default": "text"},
    "mode": {"type": "str", "default": "0644"},
}


def current(path: Path) -> tuple[bytes | None, int]:
    """Content and permissions, or None for a file that is not there."""
    try:
        return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None, 0


def described(path: Path, before: bytes | None, after: bytes | None) -> dict:
    return backup.diff(path, shown(before), shown(after))


def shown(content: bytes | None) -> str:
    """An archive has no lines to compare, and a hash to tell it by."""
    if content is not None and content.startswith(b"PK"):
        return f"a program, sha256 {hashlib.sha256(content).hexdigest()[:12]}\n"
    return (content or b"").decode(errors="replace")


def modes(before: int, after: int) -> dict:
    """Permissions that differ stand in the diff's heads: content alone would show nothing."""
    return {} if before == after else {"before_mode": f"{before:04o}", "after_mode": f"{after:04o}"}


def present(module: AnsibleModule, changed: list, diffs: list) -> None:
    hidden = [{"path": path, "content": text, "mode": "0600"} for path, text in module.params["secrets"].items()]
    for entry in (*module.params["files"], *hidden):
        path, mode = Path(entry["path"]), int(entry["mode"], 8)
        encoded = entry.get("encoding") == "base64"
        content = base64.b64decode(entry["content"]) if encoded else entry["content"].encode()
        before, before_mode = current(path)
        if before == content and before_mode == mode:
            continue
        changed.append(str(path))
        compared = (b"a secret\n", b"another\n") if entry in hidden else (before, content)
        diffs.append(described(path, *compared) | ({} if before is None else modes(before_mode, mode)))
        if not module.check_mode:
            if module.params["remember"]:
                backup.keep_file(path)
            backup.write(path, content, mode)


def absent(module: AnsibleModule, changed: list, diffs: list) -> None:
    """The last first, so that a folder is empty when the file goes that it was made for."""
    for entry in reversed(module.params["files"]):
        path = Path(entry["path"])
        if not backup.holds_file(path):
            continue
        before, _ = current(path)
        changed.append(str(path))
        if not module.check_mode:
            backup.restore_file(path)
            diffs.append(described(path, before, current(path)[0]))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": ENTRY},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "remember": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    changed: list = []
    diffs: list = []
    (present if module.params["state"] == "present" else absent)(module, changed, diffs)
    module.exit_json(changed=bool(changed), paths=changed, diff=diffs)


if __name__ == "__main__":
    main()
