#!/usr/bin/python
from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import text

DOCUMENTATION = r"""
module: sparkloom_k3s_secrets
short_description: Make and read the cluster's tokens
description:
  - Makes the two passphrases on the first server, once; reads them, and the forms with the certificate's hash that K3s
    writes when it runs. The result holds secrets.
options:
  paths:
    type: dict
    required: true
    description: ["Files token and agent_token; joining, where K3s writes full tokens by role; kubeconfig."]
  create: {type: bool, default: false, description: [Make what is missing.]}
  marks:
    type: bool
    default: false
    description: ["Only their sha256, by which two machines' are compared, and which files others can read."]
"""


def make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(secrets.token_hex(32) + "\n")


def marks(paths: dict) -> dict:
    """Of each text its hash, nothing where there is none: it tells whether two are one, and is no secret."""
    files = {"token": paths["token"], "agent_token": paths["agent_token"], **paths["joining"]}
    texts = {name: text(Path(file)) for name, file in files.items()}
    return {name: hashlib.sha256(read.encode()).hexdigest() if read else "" for name, read in texts.items()}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "dict", "required": True},
            "create": {"type": "bool", "default": False},
            "marks": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    args, create = module.params["paths"], module.params["create"]
    kept = [Path(args["token"]), Path(args["agent_token"])]
    missing = [path for path in kept if not text(path)]
    opened = [path for path in kept if path not in missing and path.stat().st_mode & 0o077]
    if module.params["marks"]:
        module.exit_json(marks=marks(args), opened=[str(path) for path in opened])
    if create and not module.check_mode:
        for path in missing:
            path.unlink(missing_ok=True)
            make(path)
        for path in opened:
            path.chmod(0o600)
    module.exit_json(
        changed=create and bool(missing or opened),
        missing=[str(path) for path in (*missing, *opened)],
        tokens={
            "server": text(Path(args["joining"]["server"])) or text(kept[0]),
            "agent": text(Path(args["joining"]["agent"])) or text(kept[1]),
            "agent_passphrase": text(kept[1]),
        },
        kubeconfig=text(Path(args["kubeconfig"])),
    )


if __name__ == "__main__":
    main()
