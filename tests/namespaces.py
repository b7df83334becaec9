"""What tests ask before they make Sparks out of network namespaces (testbed/beds/cabling.py)."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def _lacks() -> str:
    """Why there are none here; root in a container may still not make one."""
    if os.geteuid() != 0:
        return "root"
    if missing := [name for name in ("ip", "unshare") if not shutil.which(name)]:
        return f"{' and '.join(missing)} on PATH"
    made = subprocess.run(["unshare", "--net", "--mount", "ip", "link", "add", "type", "bridge"], capture_output=True)
    return "a kernel and a container that allow it" if made.returncode else ""


_LACKS = _lacks()
needs_namespaces = pytest.mark.skipif(bool(_LACKS), reason=f"makes network namespaces and bridges: needs {_LACKS}")
