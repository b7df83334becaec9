"""Which tasks the cost callback counts as module runs on a host."""

from __future__ import annotations

import importlib.util

import pytest

from tests.places import REPO

SPEC = importlib.util.spec_from_file_location("times", REPO / "plugins/callback/sparkloom_times.py")
assert SPEC and SPEC.loader
times = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(times)


@pytest.mark.parametrize(
    ("action", "delegate_to", "remote"),
    [
        ("sparkloom_node", None, True),
        ("ansible.builtin.command", None, True),
        ("ansible.builtin.command", "localhost", False),
        ("kubernetes.core.k8s", "localhost", False),
        ("ansible.builtin.debug", None, False),
        ("set_fact", None, False),
        ("sparkloom", None, False),
    ],
)
def test_remote(action: str, delegate_to: str | None, remote: bool) -> None:
    assert times.is_remote(action, delegate_to) is remote
