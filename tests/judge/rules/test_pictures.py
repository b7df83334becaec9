"""Pictures that an engine fetches: judged of a launch on a site, as what a site opens is no flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from tests.inventories import own

PICTURES = "qwen--qwen3.6-27b-fp8"


@pytest.mark.parametrize(("opens", "found"), [("", False), ("egress: [{cidr: 0.0.0.0/0, ports: [443]}]", True)])
def test_only_a_site_that_opens_a_way_is_told(tmp_path: Path, opens: str, found: bool) -> None:
    site = own(tmp_path)
    said = site / "group_vars" / "all" / "cluster.yml"
    said.write_text(said.read_text().replace("cluster:\n", f"cluster:\n  {opens}\n", 1))
    rules = {one.rule: one for one in case.judge(PICTURES, site).findings}
    assert ("pictures-by-address" in rules) is found
