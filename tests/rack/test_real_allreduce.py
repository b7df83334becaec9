"""`verify.yml -e fabric_check_between=pods` with torch and gloo of SGLang's image: green over rails, red beside.

NCCL needs GPUs; all else of that check is what runs on Sparks: its Jobs, the pods' network, what it reads and says.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.inputs import profile
from testbed.beds.rack import cluster, inventory
from testbed.standins.hub import tiny
from tests.rack import real
from tests.rack.running import run
from tests.rack.test_real_sglang import GLOO

pytestmark = real.MARKS
NAME = "tiny-dense--sglang-2node"
BYTES = 64 << 20
VERIFY = (
    "-e",
    "fabric_check_between=pods",
    "-e",
    "fabric_check_pods_backend=gloo",
    "-e",
    f"fabric_check_pods_bytes={BYTES}",
)


@pytest.fixture(scope="module", autouse=True)
def free_rails() -> Iterator[None]:
    """SGLang's image on two nodes, the site's attachments, and nothing that is served."""
    with real.profiles():
        group = real.Served(NAME, "sglang", 30000, "tiny", ("spark1", "spark2"), 420.0, GLOO)
        group.start()
        done = group.stop()
        assert done.returncode == 0, done.stdout[-3000:]
        yield


def verify(name: str) -> tuple[int, str]:
    words = ("-i", str(inventory.path()), "playbooks/verify.yml", *VERIFY, "-e", f"profile={name}")
    done = run("ansible-playbook", *words, ANSIBLE_NOCOLOR="1", COLUMNS="400")
    return done.returncode, done.stdout


def left() -> str:
    return cluster.kubectl("-n", "sparkloom", "get", "jobs,configmaps", "-o", "name")


def test_gloo_over_the_rails_is_as_fast_as_tcp_allows() -> None:
    code, said = verify(NAME)
    assert code == 0, said[-4000:]
    assert re.search(r"ok: [\d.]+ GB/s by gloo over the rails, where one TCP stream carries [\d.]+", said), said[-3000:]
    assert "allreduce" not in left()


def test_every_size_is_there_and_the_bytes_went_by_the_rails() -> None:
    words = (NAME, "-i", str(inventory.path()), "--backend", "gloo", "--largest", str(BYTES), "--json")
    done = run("sparkloom", "allreduce", *words)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert [row["bytes"] for row in told["sizes"]][-1] == BYTES and told["latency_us"] > 0
    assert told["transport"]["verdict"] == "rails" and told["tcp_gb_s"] > told["least_busbw_gb_s"] > 0
    print(json.dumps({key: told[key] for key in ("busbw_gb_s", "tcp_gb_s", "latency_us")}))


def test_a_profile_that_sends_gloo_elsewhere_is_red_and_says_where(tmp_path: Path) -> None:
    text = (tiny.PROFILES / f"{NAME}.yml").read_text()
    (tmp_path / "tiny-beside--sglang-2node.yml").write_text(f"{text}\nenv:\n  GLOO_SOCKET_IFNAME: eth0\n")
    before = os.environ[profile.OWN]
    os.environ[profile.OWN] = str(tmp_path)
    try:
        code, said = verify("tiny-beside--sglang-2node")
    finally:
        os.environ[profile.OWN] = before
    assert code and "wrong-transport: gloo took eth0" in said, said[-4000:]
    assert "allreduce" not in left()
