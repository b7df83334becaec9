"""What a shell's test says where both of its sides are known; what asks the author's machine is not guessed."""

from __future__ import annotations

import operator
from fnmatch import fnmatchcase

from sparkloom.inputs.importers.expansion import OPEN

NUMBERS = {
    "-eq": operator.eq, "-ne": operator.ne, "-gt": operator.gt, "-lt": operator.lt, "-ge": operator.ge,
    "-le": operator.le,
}  # fmt: skip


def decided(words: list[str]) -> bool | None:
    """What a test says, where both of its sides are known; None where it asks the machine."""
    if not words or words[0] not in ("[", "[[", "test"):
        return {"true": True, "false": False}.get(words[0]) if len(words) == 1 else None
    inside = [word for word in words[1:] if word not in ("]", "]]")]
    if any(OPEN.search(word) for word in inside):
        return None
    if inside[:1] == ["!"]:
        said = decided(["[", *inside[1:]])
        return None if said is None else not said
    if len(inside) == 2 and inside[0] in ("-z", "-n"):
        return (inside[1] == "") == (inside[0] == "-z")
    if len(inside) == 1 and inside[0] in ("-z", "-n"):
        return inside[0] == "-z"
    if len(inside) == 3 and inside[1] in ("=", "==", "!="):
        return fnmatchcase(inside[0], inside[2]) == (inside[1] != "!=")
    if len(inside) == 3 and inside[1] in NUMBERS and inside[0].isdigit() and inside[2].isdigit():
        return bool(NUMBERS[inside[1]](int(inside[0]), int(inside[2])))
    return None
