"""Command lines of profiles whose image is a fork: no release's parser knows the fork's own words."""

from __future__ import annotations

from collections.abc import Sequence

from sparkloom.inputs.profile import Fork
from tests.testbed.standin import judge


def without_own(argv: Sequence[str], fork: Fork | None) -> list[str]:
    """All but the flags that the fork adds; lint marks those, one by one."""
    kept, _ = judge.apart(argv, {f"--{key.replace('_', '-')}" for key in fork.flags} if fork else ())
    return kept
