"""Make and read the cluster's tokens.

Makes the two passphrases on the first server, once; reads them, and the forms with the certificate's hash that K3s
writes when it runs. The result holds secrets.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkloom.onnode.host.read import text
from sparkloom.onnode.task import Task


def make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(secrets.token_hex(32) + "\n")


def hashes(paths: Mapping[str, Any]) -> dict[str, str]:
    """Of each text its hash, nothing where there is none: it tells whether two are one, and is no secret."""
    files = {"token": paths["token"], "agent_token": paths["agent_token"], **paths["joining"]}
    texts = {name: text(Path(file)) for name, file in files.items()}
    return {name: hashlib.sha256(read.encode()).hexdigest() if read else "" for name, read in texts.items()}


def main(
    task: Task,
    paths: Mapping[str, Any],  # files token and agent_token; joining, where K3s writes full tokens by role
    create: bool = False,  # make what is missing
    marks: bool = False,  # only their sha256, by which two machines' are compared, and which files others can read
) -> None:
    kept = [Path(paths["token"]), Path(paths["agent_token"])]
    missing = [path for path in kept if not text(path)]
    opened = [path for path in kept if path not in missing and path.stat().st_mode & 0o077]
    if marks:
        task.exit_json(marks=hashes(paths), opened=[str(path) for path in opened])
    if create and not task.check_mode:
        for path in missing:
            path.unlink(missing_ok=True)
            make(path)
        for path in opened:
            path.chmod(0o600)
    task.exit_json(
        changed=create and bool(missing or opened),
        missing=[str(path) for path in (*missing, *opened)],
        tokens={
            "server": text(Path(paths["joining"]["server"])) or text(kept[0]),
            "agent": text(Path(paths["joining"]["agent"])) or text(kept[1]),
            "agent_passphrase": text(kept[1]),
        },
    )
