#!/usr/bin/python
"""Write all files of one concern in one module run, and say for each whether it changed."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_files
short_description: Write several small files in one run
description: [Writes root-owned files whose content the controller rendered; atomic, with check mode and diff.]
options:
  files:
    type: list
    elements: dict
    required: true
    description: [What to write.]
    suboptions:
      path: {type: path, required: true, description: [Where.]}
      content: {type: str, required: true, description: [The whole file.]}
      mode: {type: str, default: "0644", description: [Octal permissions.]}
author: [Sparkloom]
"""

ENTRY = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0644"},
}


def current(path: Path) -> tuple[str | None, int]:
    """Content and permissions, or None for a file that is not there."""
    try:
        return path.read_text(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None, 0


def write(path: Path, content: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(content)
    Path(scratch).replace(path)


def main() -> None:
    module = AnsibleModule(
        argument_spec={"files": {"type": "list", "elements": "dict", "required": True, "options": ENTRY}},
        supports_check_mode=True,
    )
    changed, diffs = [], []
    for entry in module.params["files"]:
        path, content, mode = Path(entry["path"]), entry["content"], int(entry["mode"], 8)
        before, before_mode = current(path)
        if before == content and before_mode == mode:
            continue
        changed.append(str(path))
        diffs.append({"before": before or "", "after": content, "before_header": str(path), "after_header": str(path)})
        if not module.check_mode:
            write(path, content, mode)
    module.exit_json(changed=bool(changed), paths=changed, diff=diffs)


if __name__ == "__main__":
    main()
