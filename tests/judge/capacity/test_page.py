"""docs/capacity.md is what the code says today, but for its stamp."""

from __future__ import annotations

from sparkloom.cli import capacity_page
from tests.places import REPO

DOCUMENT = REPO / "docs" / "capacity.md"


def test_the_page_is_not_stale() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    stamped = [line for line in written.splitlines() if line.startswith("*Generated ")]
    assert len(stamped) == 1
    assert written.replace(f"\n{stamped[0]}\n", "") == capacity_page.body(), (
        "docs/capacity.md is stale; run .venv/bin/python -m sparkloom.cli.capacity_page > docs/capacity.md"
    )
