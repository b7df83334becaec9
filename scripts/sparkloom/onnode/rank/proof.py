"""Who knows the group's secret. A nonce of each side makes the key of one connection, and with it every line is proved.

A line's proof covers its direction and its number, which are not sent: what is forged, changed, left out, repeated,
moved or sent back to where it came from fits no place. Nothing here keeps a line from being read: what ranks say to
each other is no secret, only what they believe.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

HEAD, FOLLOWER = b"head", b"follower"
SHORTEST = 32  # characters of a secret
LONGEST_SECRET = 512
SIZE = hashlib.sha256().digest_size
NONCE = rb"[0-9a-f]{%d}" % (2 * SIZE)
HELLO = re.compile(rb'\{"rank": ([1-9][0-9]{0,3}), "nonce": "(' + NONCE + rb')"\}')
ANSWER = re.compile(rb'\{"nonce": "(' + NONCE + rb')", "proof": "(' + NONCE + rb')"\}')


class NoSecret(Exception):
    """The file with the group's secret is not what it should be."""


def secret(path: str) -> bytes:
    """Read anew for each connection: a Secret that was renewed needs no restart."""
    if not path:
        raise NoSecret("the plan of this group of several ranks names no secret; playbooks/serve.yml applies it anew")
    try:
        with Path(path).open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NoSecret(f"{path} is no file; expected the group's secret, which playbooks/serve.yml makes")
            text = file.read(LONGEST_SECRET + 1).strip()
    except OSError as error:
        raise NoSecret(f"{path}: {error.strerror}; expected the group's secret, playbooks/serve.yml makes it") from None
    if not SHORTEST <= len(text) <= LONGEST_SECRET:
        raise NoSecret(
            f"{path} has {len(text)} characters, expected {SHORTEST} to {LONGEST_SECRET}; "
            "delete the Secret, and playbooks/serve.yml makes another"
        )
    return text


def nonce() -> bytes:
    return os.urandom(SIZE)


@dataclass
class Session:
    """One side of one connection."""

    key: bytes
    mine: bytes
    theirs: bytes
    said: int = 0
    heard: int = 0

    @classmethod
    def of(cls, secret: bytes, rank: int, follower: bytes, head: bytes, mine: bytes) -> Session:
        """`follower` and `head`: the nonces, one of each side."""
        key = _mac(secret, b"sparkloom control 1", str(rank).encode(), follower, head)
        return cls(key, mine, FOLLOWER if mine == HEAD else HEAD)

    def shown(self) -> bytes:
        """What the head answers: it knows the secret, and this is no answer to another one's nonce."""
        return _mac(self.key, b"shown", HEAD)

    def seal(self, text: bytes) -> bytes:
        mark = self._mark(self.mine, self.said, text)
        self.said += 1
        return mark + b" " + text

    def open(self, line: bytes) -> bytes | None:
        """The text of the line that is due now, or None."""
        mark, _, text = line.partition(b" ")
        if not hmac.compare_digest(mark, self._mark(self.theirs, self.heard, text)):
            return None
        self.heard += 1
        return text

    def _mark(self, side: bytes, number: int, text: bytes) -> bytes:
        return _mac(self.key, b"line", side, str(number).encode(), text).hex().encode()


def _mac(key: bytes, *parts: bytes) -> bytes:
    """Each part with its length before it: no two lists of parts are the same bytes."""
    joined = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.new(key, joined, hashlib.sha256).digest()
