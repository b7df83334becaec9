"""What tests ask before they make Sparks out of network namespaces (testbed/beds/cabling.py)."""

from __future__ import annotations

import os
import shutil

import pytest

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="makes network namespaces: needs root and iproute2"
)
