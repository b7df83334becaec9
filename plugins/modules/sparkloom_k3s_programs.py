#!/usr/bin/python
from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import digest
from ansible.module_utils.urls import open_url

DOCUMENTATION = r"""
module: sparkloom_k3s_programs
short_description: Install programs out of release files whose checksum is known
description:
  - Takes each release file from I(staging) when the controller put it there, else downloads it.
  - Refuses another checksum.
  - Files are replaced in one step, as real files, so that a running K3s and K3s' own links are left alone.
options:
  items:
    type: list
    elements: dict
    required: true
    description: [What to install.]
    suboptions:
      name: {type: str, required: true, description: [The release file's name.]}
      url: {type: str, required: true, description: [Where to download it.]}
      sha256: {type: str, required: true, description: [Its checksum.]}
      variable: {type: str, required: true, description: ["Which variable names the checksum, for the refusal."]}
      files:
        type: dict
        required: true
        description: [Path on this machine to member of the archive; nothing means the file itself.]
  record: {type: path, required: true, description: [Where to keep what was installed from which file.]}
  staging: {type: path, required: true, description: [Folder of files that the controller brought; emptied afterwards.]}
"""

ITEM = {
    "name": {"type": "str", "required": True},
    "url": {"type": "str", "required": True},
    "sha256": {"type": "str", "required": True},
    "variable": {"type": "str", "required": True},
    "files": {"type": "dict", "required": True},
}
DATA = (".tar", ".tar.zst", ".tar.gz")  # not programs


class ReleaseFileError(Exception):
    """Something a person can act on."""


def obtained(item: dict, staging: Path) -> Path:
    """The release file, proven to be the one that was pinned."""
    path = staging / item["name"]
    if not path.exists():
        staging.mkdir(parents=True, exist_ok=True)
        part = staging / f".{item['name']}.part"
        try:
            with open_url(item["url"], timeout=60) as answer, part.open("wb") as target:
                shutil.copyfileobj(answer, target, 1 << 20)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise ReleaseFileError(
                f"{item['name']}: {item['url']} gave no file ({error}); name a mirror in k3s_url or k3s_cni_url, "
                "set k3s_fetch_by: controller, or a folder of files in k3s_artifacts"
            ) from None
        part.replace(path)
    checksum = digest(path)
    if checksum != item["sha256"]:
        path.unlink()
        raise ReleaseFileError(
            f"{item['name']}: found sha256 {checksum}, expected {item['sha256']}; not installed. "
            f"If the file is the right one, {item['variable']} in versions.yml is wrong"
        )
    return path


def install(path: Path, member: str | None, target: Path) -> str:
    """Put one file in place in one step; returns its checksum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            if member:
                with tarfile.open(path) as archive:
                    source = archive.extractfile(inside(archive, member, path.name))
                    shutil.copyfileobj(source, stream, 1 << 20)
            else:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, stream, 1 << 20)
            os.fchmod(stream.fileno(), 0o644 if target.name.endswith(DATA) else 0o755)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    return digest(target)


def inside(archive: tarfile.TarFile, member: str, name: str) -> tarfile.TarInfo:
    for entry in archive:
        if entry.isreg() and entry.name.removeprefix("./") == member:
            return entry
    raise ReleaseFileError(f"{name} has no {member}; k3s_cni_version in versions.yml names another archive")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "items": {"type": "list", "elements": "dict", "required": True, "options": ITEM},
            "record": {"type": "path", "required": True},
            "staging": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    items, record = module.params["items"], Path(module.params["record"])
    staging = Path(module.params["staging"])
    try:
        known = json.loads(record.read_text()) if record.exists() else {}
    except ValueError:
        known = {}
    done = {name: entry for name, entry in known.items() if all(Path(path).exists() for path in entry["files"])}
    lines = [f"{path} from {item['name']} ({item['sha256'][:12]})" for item in items for path in item["files"]]
    diff = {"before": "", "after": "".join(f"{line}\n" for line in lines), "after_header": "installed"}
    if module.check_mode:
        module.exit_json(changed=True, diff=diff)
    try:
        for item in items:
            path = obtained(item, staging)
            hashes = {target: install(path, member, Path(target)) for target, member in item["files"].items()}
            # One release of a thing at a time: what it replaced is no longer on record.
            done = {name: entry for name, entry in done.items() if not set(entry["files"]) & set(hashes)}
            done[item["name"]] = {"sha256": item["sha256"], "files": hashes}
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(done, indent=1) + "\n")
    except ReleaseFileError as refusal:
        module.fail_json(msg=str(refusal))
    shutil.rmtree(staging, ignore_errors=True)
    module.exit_json(changed=True, diff=diff)


if __name__ == "__main__":
    main()
