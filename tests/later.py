"""What `make test` has no time for: `make test-more` runs it."""

from __future__ import annotations

import os

import pytest

SKIPPED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_MORE"), reason="make test-more, or SPARKLOOM_MORE=1")
LATER = [pytest.mark.more, SKIPPED]
