"""The rack's rails: a name alone is no rail. What `ip` and a node's /sys said, and what `up` made of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base import names
from testbed.base.shell import RackError
from testbed.beds.rack import cluster, fabric

# Recorded on spark1 and in the rails' namespace (2026-11-22), less what nobody reads; link_index: the partner's index.
ON_NODE = [
    {"ifindex": 1, "ifname": "lo"},
    {"ifindex": 2, "link_index": 60, "ifname": "enp1s0f0np0", "link_netnsid": 1},
    {"ifindex": 4, "link_index": 62, "ifname": "enP2p1s0f0np0", "link_netnsid": 1},
    {"ifindex": 479, "link_index": 480, "ifname": "eth0", "link_netnsid": 0},
]
IN_POD = [
    {"ifindex": 2, "link_index": 11, "ifname": "eth0", "link_netnsid": 0},
    {"ifindex": 6, "link_index": 64, "ifname": "net1", "link_netnsid": 1, "ifalias": "enp1s0f0v0"},
]
SAID = "\n".join(json.dumps({"pod": pod, "links": links}) for pod, links in ((False, ON_NODE), (True, IN_POD)))
ENDS = {"s1d0": (60, 2), "s1d2": (62, 4), "s1d4": (64, 6)}
RAILS = {"enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f0v0"}
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, in namespaces of its own")
# The first program looks for a rail, as a node's units do at its start; then the rail comes.
STAGE = """
import importlib.util, os, subprocess, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("facts", sys.argv[1])
facts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(facts)
subprocess.run(["mount", "-t", "sysfs", "none", "/sys"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
facts.set_the_stage()
rail = Path("/sys/class/net/enp1s0f0np0")
assert not rail.exists()
subprocess.run(["ip", "link", "add", rail.name, "type", "bridge"], check=True)
print("there" if (rail / "address").exists() else "dangling")
"""


def test_devices_that_hang_on_their_own_ends_are_held() -> None:
    assert fabric.held_by(1, fabric.plugged(SAID), ENDS) == RAILS


@pytest.mark.parametrize("ends", [{}, {"s1d0": (60, 9)}, {"s1d0": (61, 2)}, {"s2d0": (60, 2)}])
def test_a_name_whose_partner_is_gone_or_another_s_is_missing(ends: dict[str, tuple[int, int]]) -> None:
    """Was taken for a rail: only the names were read."""
    rest = {name: pair for name, pair in ENDS.items() if name != "s1d0"}
    assert fabric.held_by(1, fabric.plugged(SAID), rest | ends) == RAILS - {"enp1s0f0np0"}


def test_up_does_not_claim_to_have_healed_a_rail_that_nobody_can_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended with `done`, while /sys/class/net/enp1s0f0np0 led nowhere on the node that was restarted."""
    dangling = names.NODES["spark4"]
    monkeypatch.setattr(fabric, "FACTS_SECONDS", 0)
    monkeypatch.setattr(cluster, "node_sh", lambda c, script: "enp1s0f0np0\n" if c == dangling else "")
    with pytest.raises(RackError, match=r"on spark4 enp1s0f0np0, expected .* rack node spark4 restart"):
        fabric._require_seen()


@ROOT
def test_a_rail_that_was_looked_for_before_it_came_is_there_afterwards(tmp_path: Path) -> None:
    """An overlay over /sys/class/net kept the "not there" of the first look: after `docker restart`, a dead link."""
    facts = names.NODE_FILES / "usr/local/lib/sparkloom-testbed/facts.py"
    apart = ["unshare", "--mount", "--net", "--propagation", "private"]
    done = subprocess.run(
        [*apart, sys.executable, "-c", STAGE, str(facts)], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout.strip(), done.returncode) == ("there", 0), done.stderr
