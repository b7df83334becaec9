"""Two virtual machines for one test session. docs/real.md says how to run these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.beds.vm import lifecycle
from tests.vm.machines import REPO, Rack


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Minutes of emulation: only where somebody asks for it, as `make test-vm` does."""
    if os.environ.get("SPARKLOOM_VM") or "vm" in config.option.markexpr.replace("not vm", ""):
        return
    for item in items:
        if item.get_closest_marker("vm"):
            item.add_marker(pytest.mark.skip(reason="virtual machines: make test-vm, or SPARKLOOM_VM=1"))


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    """Fresh from their first boot. SPARKLOOM_VM_KEEP=1 takes those that run as they are, and leaves them running."""
    keep = bool(os.environ.get("SPARKLOOM_VM_KEEP"))
    for command in ("up",) if keep else ("down", "up"):
        argv = [sys.executable, "-m", "testbed", "vm", command]
        done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    yield Rack(lifecycle.running())
    if not keep:
        subprocess.run([sys.executable, "-m", "testbed", "vm", "down"], cwd=REPO, check=True, capture_output=True)
