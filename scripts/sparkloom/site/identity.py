"""Whose box is this? What answers at each machine's address, compared with what the site's known_hosts has of it."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sparkloom.inputs import answers, known_hosts
from sparkloom.inputs.known_hosts import Machine

WAIT = 8  # seconds for a connection
# The key is proved before anybody logs in, so nobody does; whatever answers, it is only written aside.
ASKS = (
    f"-o BatchMode=yes -o ConnectTimeout={WAIT} -o PreferredAuthentications=none -o ControlPath=none -o CheckHostIP=no "
    "-o StrictHostKeyChecking=accept-new -o UpdateHostKeys=no -o GlobalKnownHostsFile=/dev/null"
).split()


def presented(logins: Mapping[str, Sequence[str]]) -> dict[str, Machine]:
    """By name, the host key of whoever answers; `logins`: ssh's words, from the program to the address."""
    with ThreadPoolExecutor(16) as pool:
        told = zip(logins, pool.map(_presented, logins.values()), strict=True)
        return {name: Machine(key) for name, key in told if key}


def _presented(login: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / known_hosts.FILE
        command = [login[0], "-o", f"UserKnownHostsFile={file}", *ASKS, *login[1:]]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, input=b"", capture_output=True, timeout=3 * WAIT)
        said = file.read_text(errors="replace").split() if file.exists() else []
    key = " ".join(said[1:3])
    return "" if answers.fault(answers.HOST_KEY, key) else key


def strict(folder: Path, name: str) -> str:
    """What makes ssh connect to this machine only, whatever address it is sent to."""
    file = shlex.quote('UserKnownHostsFile="{}"'.format(str(known_hosts.place(folder)).replace("%", "%%")))
    ours = f"-o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes -o UpdateHostKeys=no -o HostKeyAlias={name}"
    return f"{ours} -o {file}"


def told(name: str, machine_id: str, serial: str) -> Machine:
    """What a machine says of itself; a maker's placeholder is no serial number."""
    own = "" if answers.fault(answers.SERIAL, serial) else serial
    return Machine(machine_id=answers.require(answers.MACHINE_ID, machine_id, name), serial=own)


def strange(
    folder: Path, known: Mapping[str, Machine], seen: Mapping[str, Machine], addresses: Mapping[str, str]
) -> str:
    """What is not as recorded, and its cure; empty where every machine is in its place."""
    others = {name: _whose(seen[name], known) for name in seen if name in known and known[name].differs(seen[name])}
    if not others:
        return ""
    found = [
        f"{name}'s address ({addresses[name]}) is answered by {other or _shown(seen[name], known[name])}"
        for name, other in others.items()
    ]
    new = [name for name, other in others.items() if not other]
    forget = " and ".join(f"ssh-keygen -f {known_hosts.place(folder)} -R {name}" for name in new)
    cures = [f"replaced or installed anew: {forget}, and the next run records it"] if new else []
    cures += [f"where addresses changed: ansible_host and management_address in {folder}/hosts.yml"]
    return f"{', '.join(found)}; nothing was written\n-> {'; '.join(cures)}"


def _whose(seen: Machine, known: Mapping[str, Machine]) -> str:
    """The name of a machine; empty for one that no run has seen."""
    same = (name for name, one in known.items() if one.key == seen.key and not one.differs(seen))
    return next(same, "")


def _shown(seen: Machine, known: Machine) -> str:
    found, expected = (" ".join([one.fingerprint, *one.more]) for one in (seen, known))
    return f"a machine that no run has seen (found {found}, expected {expected})"
