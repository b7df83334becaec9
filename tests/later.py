"""What `make test` has no time for: `make test-more` runs it; `make test-fuzz` throws all dice, new each time."""

from __future__ import annotations

import os

import pytest

SKIPPED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_MORE"), reason="make test-more, or SPARKLOOM_MORE=1")
LATER = [pytest.mark.more, SKIPPED]


def thrown(rounds: int) -> int:
    """How often dice are thrown. `make test` throws the same ones each time, where a fifth shows what all would."""
    return rounds if os.environ.get("SPARKLOOM_DICE") else rounds // 5
