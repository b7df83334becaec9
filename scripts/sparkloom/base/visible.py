"""Foreign text as it may be shown: what a terminal would obey, or what turns text around, is spelled instead.

Standard library only, and packed with what runs on nodes: the CLI's streams, Ansible's display, reports and each rank's
log stand on it. The spelling is JSON's (`\\u001b`), so that JSON stays JSON and means the same; newline and tab stay,
and clean text is the same text.
"""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, the line ends that only some readers know, marks that reorder what is read, and bytes
# of a name that are no text (surrogates): no stream can write them.
OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_OBEYED = re.compile(f"[{OBEYED}]")
_BUT_COLOURS = re.compile(f"(\x1b\\[[0-9;]*m)|[{OBEYED}]")


def visible(text: str) -> str:
    return _OBEYED.sub(_spelled, text)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def but_colours(text: str) -> str:
    """The same where colours are the writer's own; they change nothing but how the text looks."""
    return _BUT_COLOURS.sub(lambda found: found[1] or _spelled(found), text)


def _spelled(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
