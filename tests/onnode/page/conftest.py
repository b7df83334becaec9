"""What the tests of the page share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.onnode.now.recorded import Recorded


@pytest.fixture
def site(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)
