"""Command lines of profiles whose image is a fork: no release's parser knows the fork's own words."""

from __future__ import annotations

from collections.abc import Sequence

from sparkloom.inputs.profile import Fork


def without_own(argv: Sequence[str], fork: Fork | None) -> list[str]:
    """All but the flags that the fork adds; lint marks those, one by one."""
    own = {f"--{key.replace('_', '-')}" for key in fork.flags} if fork else set()
    kept: list[str] = []
    dropping = False
    for word in argv:
        dropping = word in own if word.startswith("--") else dropping
        if not dropping:
            kept.append(word)
    return kept
