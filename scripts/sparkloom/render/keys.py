"""The site's own key: made once, kept in a file that its owner alone reads, and known to the router by its hash.

An engine has a key of its own, which it takes from a file in its pod (`engine.yaml` or
the bare key), never from its command line. That key, and what the ranks of a group know each other by, is kept by the
cluster alone: no person ever needs it.
"""

from __future__ import annotations

import json
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.onnode.rank import proof

ENGINE_FILE, BARE_FILE = "engine.yaml", "key"  # what `--config` of SGLang and vLLM reads; what the supervisor reads
GROUP_FILE = "secret"  # of a group's Secret
USABLE = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")  # what a header and every engine's file take without quoting
OURS_ONLY = 0o077


def write(path: Path, text: str) -> None:
    """Whole or not at all, and for its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write(path, text, 0o600)


def guarded(path: Path) -> None:
    """Refuse a secret that others on this machine may read."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OURS_ONLY:
        message = f"mode {mode:04o}, expected 0600: chmod 600 {path}, then make a new one"
        raise InputError.single(str(path), message, rule="open-secret")


def read(path: Path) -> str:
    """The key, or empty where none was made."""
    if not path.is_file():
        return ""
    guarded(path)
    key = path.read_text(encoding="utf-8").strip()
    if not USABLE.fullmatch(key):
        message = "no usable API key; expected 16 to 512 letters, digits or ._~+/=- on one line"
        raise InputError.single(str(path), f"{message}. Remove the file to have one made", rule="bad-key")
    return key


def ensure(path: Path, *, dry: bool = False) -> tuple[str, bool]:
    """The key, and whether it was (or would be) made now."""
    if key := read(path):
        return key, False
    key = f"sk-{secrets.token_urlsafe(32)}"
    if not dry:
        write(path, key + "\n")
    return key, True


def engine_data(kept: Mapping[str, str] | None) -> dict[str, str]:
    """Contents of the Secret that rank 0's engine reads once: what is kept when it is usable, else made now."""
    known = (kept or {}).get(BARE_FILE, "")
    key = known if USABLE.fullmatch(known) else f"sk-{secrets.token_urlsafe(32)}"
    return {ENGINE_FILE: f"api-key: {json.dumps(key)}\n", BARE_FILE: key}


def group_data(kept: Mapping[str, str] | None) -> dict[str, str]:
    """Contents of the Secret that every rank of a group mounts: what is kept when it is usable, else made now."""
    known = (kept or {}).get(GROUP_FILE, "")
    usable = USABLE.fullmatch(known) and len(known) >= proof.SHORTEST
    return {GROUP_FILE: known if usable else secrets.token_hex(proof.SIZE)}
