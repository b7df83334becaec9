"""What machines answer: nothing of it is kept before it has the form of its kind.

Ansible templates what stands in an inventory, on its owner's own machine: what a node says of itself is not for it.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from sparkloom.base.errors import InputError
from sparkloom.base.visible import visible
from sparkloom.onnode.images import reference
from sparkloom.onnode.weights import names

LONGEST_SHOWN = 60


class Kind(NamedTuple):
    name: str
    form: re.Pattern[str]
    expected: str


NAME = Kind("name", re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"), "a host name of a-z, 0-9 and -")
INTERFACE = Kind("interface", re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"), "an interface such as enP7s7")
ADDRESS = Kind("address", re.compile(r"\d{1,3}(\.\d{1,3}){3}"), "an IPv4 address")
PCI = Kind("PCI address", re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"), "one such as 0000:01:00.0")
DIGEST = Kind("image digest", reference.DIGEST, "sha256: and 64 hex digits")
COMMIT = Kind("model commit", names.COMMIT, "40 hex digits")
KEY_FORM = r"(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]{40,2000}={0,2}"
HOST_KEY = Kind("SSH host key", re.compile(KEY_FORM), "its type and its base64")
MACHINE_ID = Kind("machine-id", re.compile(r"[0-9a-f]{32}"), "32 hex digits")
SERIAL = Kind("board serial", re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"), "letters and digits")


def fault(kind: Kind, said: str) -> str:
    """Why an answer is none of its kind; empty where it is."""
    fits = kind.form.fullmatch(said)
    if fits and kind is ADDRESS:
        try:
            ipaddress.IPv4Address(said)
        except ValueError:
            fits = None
    return "" if fits else f"answers '{visible(said)[:LONGEST_SHOWN]}' for its {kind.name}; expected {kind.expected}"


def require(kind: Kind, said: str, who: str) -> str:
    """The answer, or a refusal that names the machine."""
    if message := fault(kind, said):
        raise InputError.single(who, message, rule="machine-answer")
    return said
