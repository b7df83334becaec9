#!/usr/bin/python
from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from pathlib import Path

from ansible.module_utils import sparkloom_backup as backup
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_netplan
short_description: Keep one netplan file and the links that it describes
description:
  - Validates the file together with the others of the node in a scratch root, writes it with mode 0600, applies it.
  - Applies again when a link that is on the host differs from what the file says.
  - While C(rollback_after) seconds run, a timer stands ready to put the previous file back. C(state=proven) stops it,
    since reaching the node once more is the proof that it waited for.
  - The node keeps the file and the links as they were before the first change; C(state=absent) puts that back, under
    the same timer.
options:
  path: {type: path, required: true, description: [The file.]}
  content: {type: str, default: "", description: [The whole file; not used by state=absent.]}
  expect: {type: list, elements: dict, default: [], description: ["Interface, mtu and cidr of each link."]}
  rollback_after: {type: int, default: 90, description: [Seconds until the previous file comes back.]}
  state:
    type: str
    choices: [present, absent, proven]
    default: present
    description: [Whether the file is wanted; proven keeps what the last change left.]
"""

ROLLBACK = "sparkloom-netplan-rollback"
KEPT = Path("/var/lib/sparkloom")
SETTLE_SECONDS = 20
PROC = Path("/proc/sys/net")
# What networkd sets on a link that it manages, and leaves there when it no longer does.
LINK_KEYS = ("ipv4/{}/promote_secondaries", "ipv6/{}/disable_ipv6", "ipv6/{}/addr_gen_mode", "ipv6/{}/accept_ra")


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
        refusal = (err or out).strip().replace(root, "")
        module.fail_json(msg=f"netplan refuses the new {path}, nothing was changed: {refusal}")


def links(module: AnsibleModule) -> dict[str, dict]:
    _, out, _ = module.run_command(["ip", "-json", "address", "show"])
    return {link["ifname"]: link for link in json.loads(out or "[]")}


def cidrs(link: dict) -> set[str]:
    return {f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"}


def differing(module: AnsibleModule, expect: list[dict]) -> list[str]:
    """Links on the host that are not as described; one that moved into a pod is not on the host."""
    present, wrong = links(module), []
    for want in expect:
        link = present.get(want["interface"])
        if link is None:
            continue
        if link["mtu"] != want["mtu"] or (want.get("cidr") and want["cidr"] not in cidrs(link)):
            wrong.append(want["interface"])
    return wrong


# --- the way back ---------------------------------------------------------------------------------------------


def proven(module: AnsibleModule, path: Path) -> None:
    """Stop the timer; after an undo nothing is left to remember."""
    code, _, _ = module.run_command(["systemctl", "is-active", "--quiet", f"{ROLLBACK}.timer"])
    if code == 0:
        module.run_command(["systemctl", "stop", f"{ROLLBACK}.timer"], check_rc=True)
    for suffix in ("before", "restore"):
        (KEPT / f"{path.name}.{suffix}").unlink(missing_ok=True)
    if backup.matches_file(path):
        backup.forget("links", str(path))
        backup.forget("file", str(path))


def keep(module: AnsibleModule, path: Path) -> Path:
    """The file as it was last proven, empty for none: an earlier change without its proof does not replace it.

    That one's timer is stopped first, or it would take the kept file away.
    """
    module.run_command(["systemctl", "stop", f"{ROLLBACK}.timer"])  # most often there is none
    kept = KEPT / f"{path.name}.before"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        if path.exists():
            shutil.copy2(path, kept)
        else:
            kept.touch()
    return kept


def arm(module: AnsibleModule, path: Path, seconds: int) -> None:
    """A timer of the init system, not of this process: it fires even when nobody can log in any more.

    After the file was written, before it is applied: a timer that is faster than the writing would put nothing back.
    """
    kept, script = KEPT / f"{path.name}.before", KEPT / f"{path.name}.restore"
    # A file that took a link down leaves it down when it goes.
    upped = [f"ip link set dev {name} up" for name, link in links(module).items() if "UP" in link["flags"]]
    note = "the node stopped answering after a change of netplan; what was before is back"
    back = f"if [ -s {kept} ]; then cp -p {kept} {path}; else rm -f {path}; fi"
    lines = [back, f"rm -f {kept} {script}", "netplan apply", *upped, f"logger -t sparkloom '{note}'"]
    # In a file of its own: systemd 252 mangles a semicolon in a command that a transient timer is to start.
    script.write_text("\n".join(lines) + "\n")
    command = ["systemd-run", f"--unit={ROLLBACK}", f"--on-active={seconds}", "--timer-property=AccuracySec=1s"]
    module.run_command([*command, "--collect", "/bin/sh", str(script)], check_rc=True)


def settle(module: AnsibleModule, expect: list[dict]) -> None:
    """Apply, and give the links the time they need to come up."""
    code, out, err = module.run_command(["netplan", "apply"])
    if code:
        seconds = module.params["rollback_after"]
        refusal = (err or out).strip()
        module.fail_json(msg=f"netplan apply failed; what was before comes back within {seconds} s: {refusal}")
    until = time.monotonic() + SETTLE_SECONDS
    while differing(module, expect) and time.monotonic() < until:
        time.sleep(0.5)


# --- where it began -------------------------------------------------------------------------------------------


def kernel(interface: str) -> dict[str, str]:
    paths = (key.replace("{}", f"conf/{interface}") for key in LINK_KEYS)
    return {path: (PROC / path).read_text().strip() for path in paths if (PROC / path).exists()}


def remember(module: AnsibleModule, path: Path) -> None:
    """The file, and the links that it will describe: netplan leaves an MTU or an address when a file goes."""
    backup.keep_file(path)
    if backup.load("links", str(path)) is not None:
        return
    named = {want["interface"] for want in module.params["expect"]}
    kept = {
        name: {"mtu": link["mtu"], "up": "UP" in link["flags"], "cidrs": sorted(cidrs(link)), "kernel": kernel(name)}
        for name, link in links(module).items()
        if name in named
    }
    backup.save("links", str(path), kept)


def restore_links(module: AnsibleModule, path: Path, up: set[str]) -> None:
    """`up`: a port that the undo of its functions has put down already stays so."""
    present = links(module)
    for name, was in (backup.load("links", str(path)) or {}).items():
        link = present.get(name)
        if link is None:
            continue
        for cidr in sorted(cidrs(link) - set(was["cidrs"])):
            module.run_command(["ip", "address", "delete", cidr, "dev", name])
        for key, value in was["kernel"].items():
            with contextlib.suppress(OSError):  # a mode that only the kernel itself may choose
                (PROC / key).write_text(value)
        module.run_command(["ip", "link", "set", name, "mtu", str(was["mtu"])], check_rc=True)
        module.run_command(["ip", "link", "set", name, "down"], check_rc=True)
        if was["up"] and name in up:
            module.run_command(["ip", "link", "set", name, "up"], check_rc=True)
        for cidr in sorted(set(was["cidrs"]) - cidrs(link)):
            module.run_command(["ip", "address", "add", cidr, "dev", name])


def absent(module: AnsibleModule, path: Path) -> None:
    changed = not backup.matches_file(path) or backup.load("links", str(path)) is not None
    if changed and not module.check_mode:
        keep(module, path)
        up = {name for name, link in links(module).items() if "UP" in link["flags"]}
        backup.restore_file(path, forget_it=False)
        arm(module, path, module.params["rollback_after"])
        settle(module, [])
        restore_links(module, path, up)
    elif not module.check_mode:
        proven(module, path)
    module.exit_json(changed=changed)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "default": ""},
            "expect": {"type": "list", "elements": "dict", "default": []},
            "rollback_after": {"type": "int", "default": 90},
            "state": {"type": "str", "choices": ["present", "absent", "proven"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path, content, expect = Path(module.params["path"]), module.params["content"], module.params["expect"]
    if module.params["state"] == "absent":
        absent(module, path)
    if module.params["state"] == "proven":
        proven(module, path)
        module.exit_json(changed=False)
    before = path.read_text() if path.exists() else ""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    rewrite = before != content or mode != 0o600
    wrong = differing(module, expect)
    result = {
        "changed": rewrite or bool(wrong),
        "links": wrong,
        "drift": [{"what": str(path), "found": f"permissions {mode:04o}", "expected": "0600"}] if mode != 0o600 else [],
        "diff": [backup.diff(path, before, content)] if before != content else [],
    }
    if rewrite:
        validate(module, path, content)
    if not result["changed"] and not module.check_mode:
        # Left by a run that was killed after its change: this run's connection is the proof that it waited for.
        proven(module, path)
    if result["changed"] and not module.check_mode:
        remember(module, path)
        keep(module, path)
        if rewrite:
            backup.write(path, content, 0o600)
        arm(module, path, module.params["rollback_after"])
        settle(module, expect)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
