"""Who may ask through the gateway: the clients' keys, one a line, in a file that the kubelet renews while the pod runs.

The engine has a key of its own, which a client never sees: who shows one of these is given it by way of Traefik.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

FILE = "SPARKLOOM_CLIENTS_FILE"  # another place of that file
PLACE = "/sparkloom/clients/keys"
HEADER = "X-Sparkloom-Client"  # who asks, for the limits and the engine's side; what a client sends there is dropped

_Stamp = tuple[int, int, int]
_read: tuple[str, _Stamp | None, tuple[bytes, ...]] = ("", None, ())


def known() -> tuple[bytes, ...]:
    """The keys as they stand now: read again only where the file is another, as the kubelet swaps it whole."""
    global _read
    path = os.environ.get(FILE, PLACE)
    try:
        found = Path(path).stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if _read[:2] != (path, stamp):
            lines = Path(path).read_bytes().split(b"\n")
            _read = (path, stamp, tuple(line.strip() for line in lines if line.strip()))
    except OSError:
        return ()
    return _read[2]


def name(key: bytes) -> str:
    """What a key is called where it must not be shown."""
    return hashlib.sha256(key).hexdigest()[:16]


def names() -> list[str]:
    return [name(key) for key in known()]


def admitted(bearer: bytes, bare: bytes) -> str:
    """The name of who brings a known key, as `Bearer KEY` (a scheme is in any case: RFC 9110) or bare as Anthropic's
    clients do, else empty; each key is compared, in constant time."""
    scheme, _, rest = bearer.partition(b" ")
    brought, found = (scheme.lower() == b"bearer" and rest.strip()) or bare, ""
    for key in known():
        if hmac.compare_digest(brought, key):
            found = name(key)
    return found
