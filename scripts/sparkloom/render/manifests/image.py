"""A tag can come to mean another image between two nodes' pulls; a digest cannot."""

from __future__ import annotations

import re
from dataclasses import replace

from sparkloom.base.errors import InputError
from sparkloom.launch.resolve import Launch


def pinned(launch: Launch, digest: str) -> Launch:
    """The same launch with its image fixed to `digest`, as a registry or a node's store resolved it."""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        message = f"'{digest}' is no image digest; expected sha256: and 64 hex digits"
        raise InputError.single(launch.profile.document.file, message, rule="bad-digest")
    return replace(launch, image=f"{launch.image.partition('@')[0]}@{digest}")
