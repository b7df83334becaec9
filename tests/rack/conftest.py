"""What the tests of a served model share."""

from __future__ import annotations

import sys

import pytest

from testbed.base import names
from testbed.beds.rack import inventory
from testbed.trials import kills
from tests.rack.running import run


@pytest.fixture(scope="module")
def group() -> kills.ServedGroup:
    """What `make demo` left; alone, this file serves something itself."""
    found = kills.ServedGroup.of()
    if not found.serves(0) or len(found.pods()) != len(names.NODES):
        assert run(sys.executable, "-m", "testbed", "engine", "load").returncode == 0
        done = run("ansible-playbook", "-i", str(inventory.path()), "site.yml", "-e", "model_serving_replace=true")
        assert done.returncode == 0, done.stdout[-6000:]
    return found
