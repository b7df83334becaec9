"""An image's name as containerd keeps it: with its registry, and with a tag or a digest, never both."""

from __future__ import annotations

import re
from typing import NamedTuple

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Reference(NamedTuple):
    name: str  # with the registry
    tag: str
    digest: str

    @property
    def tagged(self) -> str:
        return f"{self.name}:{self.tag}"

    def at(self, digest: str) -> str:
        return f"{self.name}@{digest}"


def parse(text: str) -> Reference:
    rest, _, digest = text.partition("@")
    head, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    name = f"{head}{slash}{last}"
    first = name.partition("/")[0]
    if "/" not in name:
        name = f"docker.io/library/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"docker.io/{name}"
    return Reference(name, tag or "latest", digest)
