"""When certificates end: of files that lie on this node, and of the one that the endpoint shows.

The standard library reads no certificate, so the one field that is asked for is found by its form: two times that
follow each other, Validity { notBefore, notAfter }, each a UTCTime or a GeneralizedTime.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import re
import ssl
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

EVERY_SECONDS = 600.0
SECONDS = 5.0  # for the endpoint
PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s*(.+?)-----END CERTIFICATE-----", re.S)
TIME = rb"(?:\x17\x0d\d{12}|\x18\x0f\d{14})Z"
VALIDITY = re.compile(rb"\x30[\x1e\x20\x22]" + TIME + rb"(?:\x17\x0d(?=\d{12}Z)|\x18\x0f(?=\d{14}Z))(\d+)Z")
LONGEST = 1 << 20  # bytes of a file


class Ends:
    """`named`: a word for each kind, and the patterns of its files. What ends first counts."""

    def __init__(self, named: dict[str, list[str]], endpoint: str) -> None:
        self.named, self.endpoint = named, endpoint
        self._known: dict[str, float] = {}
        self._next = 0.0

    def read(self, now: float) -> dict[str, float]:
        """Certificates live for months: read every ten minutes. One that cannot be read is not there."""
        if now >= self._next:
            self._next = now + EVERY_SECONDS
            found = {name: list(_of_files(patterns)) for name, patterns in self.named.items()}
            if self.endpoint:
                found["endpoint"] = list(_of_endpoint(self.endpoint))
            self._known = {name: min(ends) for name, ends in found.items() if ends}
        return self._known


def _of_files(patterns: Iterable[str]) -> Iterator[float]:
    for pattern in patterns:
        for name in sorted(glob.glob(pattern)):  # noqa: PTH207 - a whole pattern, from the root
            with contextlib.suppress(OSError):
                yield from ends(Path(name).read_text(errors="replace")[:LONGEST])


def _of_endpoint(where: str) -> Iterator[float]:
    """Whatever it shows, trusted or not: only its end is asked."""
    host, _, port = where.rpartition(":")
    with contextlib.suppress(OSError, ValueError):
        yield from ends(ssl.get_server_certificate((host, int(port)), timeout=SECONDS))


def ends(text: str) -> Iterator[float]:
    """Of every certificate in a PEM text."""
    for body in PEM.findall(text):
        with contextlib.suppress(ValueError):  # no base64 is one too
            yield not_after(base64.b64decode("".join(body.split()), validate=True))


def ended(text: str) -> str:
    """The day on which the first of them did; empty while all last."""
    end = datetime.fromtimestamp(min(ends(text), default=0), timezone.utc)  # noqa: UP017 - 3.10
    return f"{end:%Y-%m-%d}" if 0 < end.timestamp() <= time.time() else ""


def not_after(der: bytes) -> float:
    if found := VALIDITY.search(der):
        return _time(found[1].decode())
    raise ValueError("no certificate")


def _time(text: str) -> float:
    """Two digits of a year mean 1950 to 2049."""
    if len(text) == len("YYMMDDHHMMSS"):
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).timestamp()  # noqa: UP017 - 3.10
