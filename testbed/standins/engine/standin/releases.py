"""Order of engine releases, for behaviour that a release brought or took away."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:rc(\d+)|\.post(\d+))?")


def order(release: str) -> tuple[int, ...]:
    """0.5.10rc0 < 0.5.10 < 0.5.10.post1; anything after that is somebody's build of it."""
    match = _SHAPE.match(release)
    if not match:
        return (10**6,)
    major, minor, patch, candidate, post = match.groups()
    return int(major), int(minor), int(patch), -1 if candidate else int(post or 0), int(candidate or 0)


def until(release: str, last: str) -> bool:
    return order(release) <= order(last)


def since(release: str, first: str) -> bool:
    return order(release) >= order(first)
