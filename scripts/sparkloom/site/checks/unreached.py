"""A machine on which nobody can log in: at which address, why, and what to change; never Ansible's own words for it."""

from __future__ import annotations

import re

from sparkloom.base.finding import Finding

SAID = re.compile(r"ssh: (?:Could not resolve hostname|connect to host) (\S+?)(?: port (\d+))?: ([^;:.]+)")  # OpenSSH
CURE = "ansible_host and ansible_user in hosts.yml; is it switched on? -i names another inventory"


def unreached(node: str, said: str) -> Finding:
    if not (told := SAID.search(said)):
        return Finding(node, "connection", said, "a login over ssh", f"{CURE}; ssh-copy-id, if it wants a password")
    address, port, why = told.groups()
    reason = "name not found" if "resolve" in told[0] else why.strip()
    at = address if port in (None, "22") else f"{address} port {port}"
    return Finding(node, "connection", f"does not answer on SSH at {at} ({reason})", "", CURE)
