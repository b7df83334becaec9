"""docs/capacity.md and its table of points are what the code says today, but for their stamps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.docs import capacity_page
from tests.places import REPO


@pytest.mark.parametrize(
    ("page", "made"), [("capacity.md", capacity_page.body), ("reference/predictions.md", capacity_page.predictions)]
)
def test_the_page_is_not_stale(page: str, made: Callable[[], str]) -> None:
    written = (REPO / "docs" / page).read_text(encoding="utf-8")
    stamped = [line for line in written.splitlines() if line.startswith("*Generated ")]
    assert len(stamped) == 1
    assert written.replace(f"\n{stamped[0]}\n", "") == made(), f"docs/{page} is stale: {capacity_page.__doc__}"
