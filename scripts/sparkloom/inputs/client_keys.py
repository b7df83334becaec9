"""Who may ask a site's models: keys.yml beside the inventory. Of each key only its hash is kept.

The hash is one round of SHA-256, unsalted, on purpose. A key is 256 random bits that `sparkloom keys add` made, so
there is no dictionary to go through: whoever reads the file would have to guess 2^255 times, and a salt or a slow hash
adds nothing to that. A slow one would let every stranger have the router compute for him, once per wrong key. For the
same reason nobody may bring a key of his own choice: the hash of a word that a person can remember is found in an hour.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from sparkloom.base import document
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError, Problem
from sparkloom.base.finding import Finding
from sparkloom.inputs.profile import Strict
from sparkloom.onnode.key_table import KEY_NAME, MODEL_NAME, OWNER, SIGN, Entry, digest

FILE = Path("group_vars", "all", "keys.yml")  # Ansible reads every other file of an inventory as hosts
LIST = "client_keys"
OURS_ONLY = 0o600
NONE = ","  # models of a key that opens none
SOON = datetime.timedelta(days=14)
YEAR = datetime.timedelta(days=365)
EVERY_PLACE = 1_000_000  # of a model: nobody is shut out by the site's own key


def _day(text: str) -> str:
    """The last day on which a key opens (UTC)."""
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is no day; write one as 2027-01-31") from None
    return text


Day = Annotated[str, AfterValidator(_day)]


class Key(Strict):
    """One person, or one program of a person; what it asks is counted under `name`."""

    name: Annotated[str, StringConstraints(pattern=KEY_NAME)]
    hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    models: list[Annotated[str, StringConstraints(pattern=MODEL_NAME)]] | Literal["all"] = "all"
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    requests_at_once: Annotated[int, Field(ge=1, le=1_000_000)] | None = None  # at each model; half of its places
    expires: Day | None = None
    made: Day | None = None
    admin: bool = False  # may act on the site's page: make and revoke keys, stop and start groups, read logs

    @property
    def ends(self) -> int | None:
        """Seconds since 1970 at which it opens no more: the end of its last day."""
        if self.expires is None:
            return None
        last = datetime.datetime.fromisoformat(self.expires).replace(tzinfo=datetime.UTC)
        return round((last + datetime.timedelta(days=1)).timestamp())

    @property
    def entry(self) -> Entry:
        """As the router has it."""
        return Entry(
            hash=self.hash.removeprefix(SIGN),
            name=self.name,
            models="" if self.models == "all" else ",".join(self.models) or NONE,
            requests=self.requests_per_minute or 0,
            tokens=self.tokens_per_minute or 0,
            places=self.requests_at_once or 0,
            ends=self.ends or 0,
            admin=int(self.admin),
        )

    def ended(self, now: datetime.datetime) -> bool:
        return self.ends is not None and now.timestamp() >= self.ends


def renewed(known: Sequence[Key], name: str, text: str, today: datetime.date) -> Key | None:
    """Another key for who has one, with the same limits and for as long again. The site's own opens all models for a
    year until its entry says otherwise."""
    hash, made = hashed(text), today.isoformat()
    if before := next((one for one in known if one.name == name), None):
        if before.hash == hash:
            return before
        day = datetime.date.fromisoformat
        lasts = day(before.expires) - day(before.made) if before.expires and before.made else YEAR
        ends = (today + lasts).isoformat() if before.expires else None
        return before.model_copy(update={"hash": hash, "made": made, "expires": ends})
    if name != OWNER:
        return None
    ends = (today + YEAR).isoformat()
    return Key(name=name, hash=hash, requests_at_once=EVERY_PLACE, admin=True, made=made, expires=ends)


def of_entry(one: Entry) -> Key:
    """A key that the page made, as keys.yml would have it."""
    ends = datetime.datetime.fromtimestamp(one.ends, datetime.UTC).date() - datetime.timedelta(days=1)
    return Key(
        name=one.name,
        hash=f"{SIGN}{one.hash}",
        models=one.models.strip(",").split(",") if one.models else "all",
        requests_per_minute=one.requests or None,
        tokens_per_minute=one.tokens or None,
        requests_at_once=one.places or None,
        expires=ends.isoformat() if one.ends else None,
        admin=bool(one.admin),
    )


class Keyring(Strict):
    client_keys: list[Key] = Field(default=[])


def place(inventory: str | Path) -> Path:
    return Path(inventory) / FILE


def hashed(key: str) -> str:
    return f"{SIGN}{digest(key)}"


def read(file: Path) -> tuple[Document | None, list[Key]]:
    """The keys of a site and the document to point at; none before the first one. What is wrong is refused by line."""
    if not file.is_file():
        return None, []
    source = document.load(file)
    return source, _keys(source)


def parsed(text: str, file: str) -> list[Key]:
    """The keys of a text that would be such a file."""
    return _keys(document.parse(text, file))


def _keys(source: Document) -> list[Key]:
    keys = document.validate(Keyring, source).client_keys
    if problems := list(_doubles(source, keys)):
        raise InputError(problems)
    return keys


def _doubles(source: Document, keys: list[Key]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, key in enumerate(keys):
        for what, value in (("name", key.name), ("hash", key.hash)):
            before = first.setdefault(value, number)
            if before == number:
                continue
            _, line, _ = source.position((LIST, before, what))
            shown = f"'{value}'" if what == "name" else f"that of '{keys[before].name}'"
            message = f"{what} {shown} stands in line {line} already; expected one key each: remove one entry"
            yield source.problem((LIST, number, what), message, "duplicate-key")


def findings(file: Path, source: Document | None, keys: list[Key], now: datetime.datetime) -> list[Finding]:
    """What does not stop anything and should be known."""
    if source is None:
        return []
    found = list(_of_the_file(file))
    for number, key in enumerate(keys):
        where = ":".join(map(str, source.position((LIST, number, "name"))))
        found += _of_a_key(where, key, now)
    return found


def _of_the_file(file: Path) -> Iterator[Finding]:
    mode = file.stat().st_mode & 0o777
    if mode & ~OURS_ONLY:
        message = f"mode {mode:04o}: others on this machine may read who has a key and for what"
        yield Finding(f"{file}:1:1", "open-file", message, "mode 0600", f"chmod 600 {file}", "warning")


def _of_a_key(where: str, key: Key, now: datetime.datetime) -> Iterator[Finding]:
    away, anew = f"sparkloom keys revoke {key.name}", f"expires: a later day, or sparkloom keys renew {key.name}"
    if key.ended(now):
        message = f"the key of '{key.name}' ended with {key.expires}"
        yield Finding(where, "expired-key", message, "a later day, or another key", anew)
    elif key.ends is not None and key.ends - now.timestamp() < SOON.total_seconds():
        message = f"the key of '{key.name}' ends with {key.expires}"
        yield Finding(where, "key-ends-soon", message, "told in time", anew, "info")
    if key.models == []:
        message = f"the key of '{key.name}' opens no model: its list is empty"
        yield Finding(where, "key-without-models", message, "names of models, or 'all'", f"models: all, or {away}")


def days(text: str, today: datetime.date) -> str:
    """`90d` from today, or a day as it is written; ValueError says what is expected."""
    if match := re.fullmatch(r"([1-9]\d{0,4})d", text):
        return (today + datetime.timedelta(days=int(match[1]))).isoformat()
    if _day(text) < today.isoformat():
        raise ValueError(f"'{text}' is over; write a day to come, or 90d for so many days from today")
    return text
