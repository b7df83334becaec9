"""Install programs out of release files whose checksum is known.

Takes each release file from `staging` when the controller put it there, else downloads it. Refuses another checksum.
Files are replaced in one step, as real files, so that a running K3s and K3s' own links are left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict
from urllib.request import urlopen

from sparkloom.base import json_text
from sparkloom.onnode.host.read import digest
from sparkloom.onnode.task import Task


class Item(TypedDict):
    name: str  # The release file's name.
    url: str  # Where to download it.
    sha256: str  # Its checksum.
    variable: str  # Which variable names the checksum, for the refusal.
    files: Mapping[str, Any]  # Path on this machine to member of the archive; nothing means the file itself.


DATA = (".tar", ".tar.zst", ".tar.gz")  # not programs


class ReleaseFileError(Exception):
    """Something a person can act on."""


def obtained(item: Item, staging: Path) -> Path:
    """The release file, proven to be the one that was pinned."""
    path = staging / item["name"]
    if not path.exists():
        staging.mkdir(parents=True, exist_ok=True)
        part = staging / f".{item['name']}.part"
        try:
            with urlopen(item["url"], timeout=60) as answer, part.open("wb") as target:
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
                    assert source  # a regular file
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


def main(
    task: Task,
    items: Sequence[Item],  # what to install
    record: Path,  # where to keep what was installed from which file
    staging: Path,  # folder of files that the controller brought; emptied afterwards
) -> None:
    known = json_text.kept(record).items()
    done = {name: entry for name, entry in known if all(Path(path).exists() for path in entry["files"])}
    lines = [f"{path} from {item['name']} ({item['sha256'][:12]})" for item in items for path in item["files"]]
    diff = {"before": "", "after": "".join(f"{line}\n" for line in lines), "after_header": "installed"}
    if task.check_mode:
        task.exit_json(changed=True, diff=diff)
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
        task.fail_json(msg=str(refusal))
    shutil.rmtree(staging, ignore_errors=True)
    task.exit_json(changed=True, diff=diff)
