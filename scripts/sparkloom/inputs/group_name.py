"""What a group is called in the cluster: the name from which those of all its objects are made.

A group's name becomes Service and StatefulSet names; the StatefulSet controller adds a hash of ten characters in a
label of at most 63, so `<group>-rank<N>` may have 51 at most.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

LONGEST = 45  # 51 less "-rank7"
# What is put behind a group's name for its own objects. Two groups whose names differ by one of them would meet.
SUFFIXES = ("-ranks", "-rank", "-out", "-record", "-files", "-group", "-engine-key", "-served")


@lru_cache(maxsize=1024)
def label(name: str) -> str:
    """A profile's name as a DNS label: as written where it is one, else changed and told apart by a hash."""
    safe = re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")
    if not safe[:1].isalpha():  # a Service's name begins with a letter
        safe = f"m-{safe}".rstrip("-")
    if safe.replace("-", "") == name.replace(".", "").replace("-", "") and len(safe) <= LONGEST:
        return safe
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{safe[: LONGEST - 7].rstrip('-')}-{digest}"


def meetings(names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(later, earlier, the object's name that both would have) of groups that cannot be told apart."""
    labels = [label(name) for name in names]
    for later, mine in enumerate(labels):
        for earlier, other in enumerate(labels[:later]):
            if mine == other:
                yield later, earlier, mine
            elif any(mine == other + suffix or other == mine + suffix for suffix in SUFFIXES):
                yield later, earlier, max(mine, other, key=len)
