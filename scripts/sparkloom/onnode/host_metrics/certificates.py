"""When certificates end: of files that lie on this node, and of the one that the endpoint shows.

The standard library reads no certificate, so the one field that is asked for is taken from where it stands in each:
Certificate { TBSCertificate { [0] version, serial, algorithm, issuer, Validity { notBefore, notAfter } ... } ... }.
"""

from __future__ import annotations

import base64
import binascii
import glob
import re
import socket
import ssl
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

EVERY_SECONDS = 600.0
SECONDS = 5.0  # for the endpoint
PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s*(.+?)-----END CERTIFICATE-----", re.S)
SEQUENCE, VERSION, UTC_TIME, GENERAL_TIME = 0x30, 0xA0, 0x17, 0x18
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
            try:
                yield from ends(Path(name).read_text(errors="replace")[:LONGEST])
            except OSError:
                continue


def _of_endpoint(where: str) -> Iterator[float]:
    """Whatever it shows, trusted or not: only its end is asked."""
    host, _, port = where.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, int(port)), SECONDS) as plug, context.wrap_socket(plug) as spoken:
            if der := spoken.getpeercert(binary_form=True):
                yield not_after(der)
    except (OSError, ValueError):
        return


def ends(text: str) -> Iterator[float]:
    """Of every certificate in a PEM text."""
    for body in PEM.findall(text):
        try:
            yield not_after(base64.b64decode("".join(body.split()), validate=True))
        except (ValueError, binascii.Error):
            continue


def not_after(der: bytes) -> float:
    certificate, _ = _opened(der, 0, SEQUENCE)
    inside, _ = _opened(certificate, 0, SEQUENCE)
    at = 0
    if inside[:1] == bytes([VERSION]):
        _, at = _opened(inside, at, VERSION)
    for _ in range(3):  # serial, algorithm, issuer
        _, at = _opened(inside, at)
    validity, _ = _opened(inside, at, SEQUENCE)
    _, at = _opened(validity, 0)
    text, _ = _opened(validity, at)
    return _time(validity[at], text.decode("ascii"))


def _opened(data: bytes, at: int, tag: int | None = None) -> tuple[bytes, int]:
    """The content of one element, and where the next one begins."""
    if len(data) < at + 2 or (tag is not None and data[at] != tag):
        raise ValueError("no certificate")
    length, begins = data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4:
            raise ValueError("no certificate")
        length, begins = int.from_bytes(data[begins : begins + count], "big"), begins + count
    if begins + length > len(data):
        raise ValueError("a certificate that was cut")
    return data[begins : begins + length], begins + length


def _time(tag: int, text: str) -> float:
    """Two digits of a year mean 1950 to 2049."""
    if tag == UTC_TIME:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != GENERAL_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()  # noqa: UP017 - 3.10
