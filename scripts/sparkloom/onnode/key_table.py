"""Whose key opens what: the one table that the router goes by, in the Secret `client-keys`.

Entries of keys.yml come with playbooks/gateway.yml and `sparkloom keys`, others from the page; both write by this
module. A line is a hash and words, as admission.lua reads them; the first one is a version, which changes with others.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sparkloom.base.errors import InputError

NAME, FILE = "client-keys", "keys"
OWNER = "owner"  # the name under which the site's own key is counted
KEY_NAME = r"^[a-z0-9]([a-z0-9._@-]{0,62}[a-z0-9])?$"
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,199}$"
SIGN = "sha256:"  # ahead of a hash in keys.yml


class NotChanged(Exception):
    """Why a key is not made or not taken away: one sentence."""


class Entry(NamedTuple):
    """`models`: names with commas, empty for all; `ends`: seconds since 1970; `by`: who made it on the page, empty for
    one of keys.yml; `taken`: who took that one away on the page, before somebody takes it out of the file."""

    hash: str
    name: str
    models: str = ""
    requests: int = 0
    tokens: int = 0
    places: int = 0
    ends: int = 0
    admin: int = 0
    by: str = ""
    taken: str = ""

    def opens(self, now: float) -> bool:
        return not self.taken and not (self.ends and now >= self.ends)

    def administers(self, now: float) -> bool:
        return self.opens(now) and bool(self.admin)


NUMBERS = ("requests", "tokens", "places", "ends", "admin")


def generate() -> str:
    return f"sk-{secrets.token_urlsafe(32)}"


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def text(entries: Iterable[Entry]) -> str:
    lines = sorted(_line(one) for one in entries)
    return "\n".join([f"v{digest(''.join(lines))[:16]}", *lines]) + "\n"


def _line(one: Entry) -> str:
    _, *told = one._asdict().items()
    return " ".join([one.hash, *(f"{name}={value}" for name, value in told if value)])


def read(written: str) -> list[Entry]:
    try:
        return [_entry(*line.split()) for line in written.splitlines()[1:]]
    except (TypeError, ValueError):
        message = "holds a line that is no key's; delete it, and playbooks/gateway.yml makes it of keys.yml"
        raise InputError.single(f"the Secret {NAME}", message, rule="bad-keys") from None


def _entry(hashed: str, *words: str) -> Entry:
    told = dict(word.split("=", 1) for word in words)
    typed: Any = {name: int(value) if name in NUMBERS else value for name, value in told.items()}
    return Entry(hashed, **typed)


def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{NAME}"


def of_secret(secret: Mapping[str, Any]) -> list[Entry]:
    """As the cluster's API has it."""
    return read(base64.b64decode((secret.get("data") or {}).get(FILE, "")).decode(errors="replace"))


def version(written: str) -> str:
    return written.partition("\n")[0]


def merged(listed: Iterable[Entry], kept: Iterable[Entry]) -> list[Entry]:
    """Those of keys.yml as they are now, with what the page made and took of those that were there."""
    before = {one.hash: one for one in kept}
    found = {one.hash: one._replace(taken=before[one.hash].taken if one.hash in before else "") for one in listed}
    return [*found.values(), *(one for one in before.values() if one.by and one.hash not in found)]


def added(kept: Sequence[Entry], made: Entry) -> list[Entry]:
    if any(one.name == made.name for one in kept):
        raise NotChanged(f"'{made.name}' has a key already; expected a new name, such as {made.name}-laptop")
    return [*kept, made]


def revoked(kept: Sequence[Entry], name: str, by: str) -> list[Entry]:
    """One that the page made is gone; one of keys.yml opens nothing until somebody takes it out of there."""
    if name == OWNER:
        raise NotChanged("the site's own key is renewed by `sparkloom keys renew owner`")
    if not any(one.name == name and not one.taken for one in kept):
        raise NotChanged(f"no key is called '{name}'")
    return [one._replace(taken=by) if one.name == name else one for one in kept if one.name != name or not one.by]
