"""Two virtual machines for one test session. docs/vm.md says how to run these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.vm import lifecycle
from tests.vm.machines import REPO, Rack


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Minutes of emulation: the whole story where somebody asks for it, its first part inside `make test`."""
    if "vm" in config.option.markexpr.replace("not vm", ""):
        return
    short = os.environ.get("SPARKLOOM_VM") == "short"
    for item in items:
        if item.get_closest_marker("vm") and not (short and item.path.name == "test_vm_fabric.py"):
            item.add_marker(pytest.mark.skip(reason="virtual machines; make test-vm runs all of their story"))


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    """Fresh from their first boot. SPARKLOOM_VM_KEEP=1 takes those that run as they are, and leaves them running."""
    keep = bool(os.environ.get("SPARKLOOM_VM_KEEP"))
    for command in ("up",) if keep else ("down", "up"):
        done = subprocess.run([sys.executable, "-m", "testbed.vm", command], cwd=REPO, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    yield Rack(lifecycle.running())
    if not keep:
        subprocess.run([sys.executable, "-m", "testbed.vm", "down"], cwd=REPO, check=True, capture_output=True)
