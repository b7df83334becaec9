"""Whether each name of the inventory leads to the machine that it led to before; asked before anything else is."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from pathlib import Path

from sparkloom.base.repository import WORK
from sparkloom.inputs import known_hosts
from sparkloom.inputs.known_hosts import Machine
from sparkloom.site import identity
from sparkloom.site.ansible import Context, Data, asked, plain

OPTIONS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
SWITCHED_OFF = 180  # seconds for pods, mounts and the machine itself
ASKED = ("ansible_connection", "ansible_host", "ansible_port", *OPTIONS)


def keys(context: Context) -> Data:
    """Who answers at each address, by host key: nobody logs in. A machine without a record is ssh's own to judge."""
    folder = _folder(context)
    hosts = {host: _variables(context, host, ASKED) for host in sorted(asked(context.vars))}
    by_ssh = _by_ssh(context, hosts)
    known, seen = known_hosts.read(folder), identity.presented({host: _login(host, by_ssh[host]) for host in by_ssh})
    addresses = {host: str(said.get("ansible_host", host)) for host, said in hosts.items()}
    if message := identity.strange(folder, known, seen, addresses):
        return {"failed": True, "msg": message}
    return {
        "keys": {host: machine.key for host, machine in seen.items()},
        "addresses": addresses,
        "strict": {host: identity.strict(folder, host) for host in by_ssh if host in known},
        "answers": sorted({*seen, *(hosts.keys() - by_ssh.keys())}),
    }


def machines(
    context: Context,
    found: Data,  # what `keys` found
    said: str,  # variable that every machine registered from `identity`
) -> Data:
    """What each machine says of itself, beside its key; what is new is recorded, and told in a line."""
    folder, seen = _folder(context), dict[str, Machine]()
    for host, key in found["keys"].items():
        word = _variables(context, host, (said,)).get(said, {})
        if "machine_id" in word:
            seen[host] = identity.told(host, word["machine_id"], word["serial"])._replace(key=key)
    known = known_hosts.read(folder)
    if message := identity.strange(folder, known, seen, found["addresses"]):
        return {"failed": True, "msg": message}
    now = {host: known.get(host, Machine()).with_more(machine) for host, machine in seen.items()}
    record = {host: machine for host, machine in now.items() if machine != known.get(host)}
    if record and not context.dry:
        known_hosts.keep(folder, record)
        if new := [f"{host} {record[host].fingerprint}" for host in record if host not in known]:
            context.say(f"recorded in {known_hosts.place(folder)}, from now on expected: {', '.join(new)}")
    return {}


def away(context: Context, machines: list[str], seconds: int = SWITCHED_OFF) -> Data:
    """Until nobody answers at their addresses, by whatever way ssh takes there: an alias, a jump host."""
    logins = {host: _login(host, said) for host, said in _by_ssh(context, machines).items()}
    until = time.monotonic() + seconds
    while not context.dry and (left := identity.presented(logins)):
        if time.monotonic() > until:
            return {"failed": True, "msg": f"found {', '.join(left)} on after {seconds} s, expected them switched off"}
        time.sleep(1)
    return {}


def _by_ssh(context: Context, hosts: Iterable[str]) -> dict[str, Data]:
    said = {host: _variables(context, host, ASKED) for host in hosts}
    return {host: of for host, of in said.items() if of.get("ansible_connection", "ssh") in ("ssh", "smart")}


def _folder(context: Context) -> Path:
    return Path(context.vars.get("inventory_dir") or WORK / "build")


def _variables(context: Context, host: str, names: tuple[str, ...]) -> Data:
    known = context.vars["hostvars"][host]
    return dict(plain({name: known[name] for name in names if name in known}))


def _login(host: str, said: Data) -> list[str]:
    """ssh's words as Ansible would have them, as far as they lead to the machine."""
    words = shlex.split(" ".join(str(said.get(name) or "") for name in OPTIONS))
    port = ["-p", str(said["ansible_port"])] if "ansible_port" in said else []
    return ["ssh", *words, *port, str(said.get("ansible_host", host))]
