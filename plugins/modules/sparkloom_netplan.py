#!/usr/bin/python
"""Keep one netplan file, judged by netplan before it is used and taken back when the way to the node is lost."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_netplan
short_description: Keep one netplan file and the links that it describes
description:
  - Validates the file together with the others of the node in a scratch root, writes it with mode 0600, applies it.
  - Applies again when a link that is on the host differs from what the file says.
  - While C(rollback_after) seconds run, a timer stands ready to put the previous file back; stopping the timer
    C(sparkloom-netplan-rollback.timer) over a fresh connection proves that the node still answers.
options:
  path: {type: path, required: true, description: [The file.]}
  content: {type: str, required: true, description: [The whole file.]}
  expect:
    type: list
    elements: dict
    default: []
    description: [Interface, mtu and cidr of each link as it should be.]
  rollback_after: {type: int, default: 90, description: [Seconds until the previous file comes back.]}
author: [Sparkloom]
"""

ROLLBACK = "sparkloom-netplan-rollback"
KEPT = Path("/var/lib/sparkloom")
SETTLE_SECONDS = 20


def validate(module: AnsibleModule, path: Path, content: str) -> None:
    """Netplan reads the new file among its neighbours, in a scratch root that is thrown away."""
    with tempfile.TemporaryDirectory() as root:
        for folder in ("etc", "lib", "run"):
            source, target = Path("/") / folder / "netplan", Path(root) / folder / "netplan"
            if source.is_dir():
                shutil.copytree(source, target)
        candidate = Path(root) / path.relative_to("/")
        candidate.parent.mkdir(parents=True, exist_ok=True)
        candidate.touch(mode=0o600)
        candidate.write_text(content)
        code, out, err = module.run_command(["netplan", "generate", "--root-dir", root])
    if code:
        said = (err or out).strip().replace(root, "")
        module.fail_json(msg=f"netplan refuses the new {path}, nothing was changed: {said}")


def differing(module: AnsibleModule, expect: list[dict]) -> list[str]:
    """Links on the host that are not as described; one that moved into a pod is not on the host."""
    _, out, _ = module.run_command(["ip", "-json", "address", "show"])
    links = {link["ifname"]: link for link in json.loads(out or "[]")}
    wrong = []
    for want in expect:
        link = links.get(want["interface"])
        if link is None:
            continue
        cidrs = {f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"}
        if link["mtu"] != want["mtu"] or (want.get("cidr") and want["cidr"] not in cidrs):
            wrong.append(want["interface"])
    return wrong


def disarm(module: AnsibleModule) -> None:
    code, _, _ = module.run_command(["systemctl", "is-active", "--quiet", f"{ROLLBACK}.timer"])
    if code == 0:
        module.run_command(["systemctl", "stop", f"{ROLLBACK}.timer"], check_rc=True)


def arm(module: AnsibleModule, path: Path, seconds: int) -> None:
    """A timer of the init system, not of this process: it fires even when nobody can log in any more."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{path.name}.before"
    if path.exists():
        shutil.copy2(path, kept)
        restore = f"cp -p {kept} {path}"
    else:
        restore = f"rm -f {path}"
    disarm(module)
    command = ["systemd-run", f"--unit={ROLLBACK}", f"--on-active={seconds}", "--collect"]
    module.run_command([*command, "/bin/sh", "-c", f"{restore}; netplan apply"], check_rc=True)


def settle(module: AnsibleModule) -> None:
    """Apply, and give the links the time they need to come up."""
    code, out, err = module.run_command(["netplan", "apply"])
    if code:
        seconds = module.params["rollback_after"]
        said = (err or out).strip()
        module.fail_json(msg=f"netplan apply failed; what was before comes back within {seconds} s: {said}")
    until = time.monotonic() + SETTLE_SECONDS
    while differing(module, module.params["expect"]) and time.monotonic() < until:
        time.sleep(0.5)


def write(path: Path, content: str) -> None:
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(content)
    Path(scratch).replace(path)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "required": True},
            "expect": {"type": "list", "elements": "dict", "default": []},
            "rollback_after": {"type": "int", "default": 90},
        },
        supports_check_mode=True,
    )
    path, content = Path(module.params["path"]), module.params["content"]
    before = path.read_text() if path.exists() else ""
    rewrite = before != content or path.stat().st_mode & 0o777 != 0o600
    wrong = differing(module, module.params["expect"])
    headers = {"before_header": str(path), "after_header": str(path)}
    result = {
        "changed": rewrite or bool(wrong),
        "links": wrong,
        "diff": [{"before": before, "after": content, **headers}] if before != content else [],
    }
    if rewrite:
        validate(module, path, content)
    if not result["changed"] and not module.check_mode:
        # Left by a run that was killed after its change: this run's connection is the proof that it waited for.
        disarm(module)
    if result["changed"] and not module.check_mode:
        arm(module, path, module.params["rollback_after"])
        if rewrite:
            write(path, content)
        settle(module)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
