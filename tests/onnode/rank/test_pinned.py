"""A pod that may not pin memory is told so before its engine starts."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from sparkloom.onnode.rank import rails
from sparkloom.onnode.rank.plan import GroupPlan

NONE, IPC_LOCK, ALL = "0000000000000000", "0000000000004000", "000001ffffffffff"


@pytest.mark.parametrize(
    ("rdma", "limit", "held", "said"),
    [
        (True, 8 << 20, NONE, True), (True, 8 << 20, IPC_LOCK, False), (True, 8 << 20, ALL, False),
        (True, resource.RLIM_INFINITY, NONE, False), (False, 8 << 20, NONE, False),
    ],
)  # fmt: skip
def test_who_may_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rdma: bool, limit: int, held: str, said: bool
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"Name:\tpython3\nCapPrm:\t{ALL}\nCapEff:\t{held}\n")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    members = [{"rank": 0, "node": "spark1", "address": "127.0.0.1"}]
    plan = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1, "members": members}
    found = rails.unpinnable(GroupPlan.of({**plan, "rdma": rdma, "proc": str(tmp_path)}))
    assert bool(found) is said
    assert not found or ("8192 KiB" in found[0] and "LimitMEMLOCK=infinity" in found[0])
