"""What a node tells without the cluster's API: units, the journal, and the logs that the kubelet keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode import memory_guard
from sparkloom.onnode.host_metrics import disks
from sparkloom.onnode.task import Ended, Task
from tests.plugins.loading import module

without_api = module("without_api")
LOG = """2026-11-26T10:00:00.1Z stdout F [sparkloom rank 0 epoch 2] serving: every rank is ready
2026-11-26T10:00:01.2Z stderr F a last word
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in (("LOGS", "logs"), ("CGROUPS", "cgroups"), ("PROC", "proc")):
        monkeypatch.setattr(memory_guard, name, tmp_path / folder)
    said = {"systemctl": "k3s.service loaded failed failed Lightweight Kubernetes\n", "journalctl": "K3s: no etcd\n"}
    monkeypatch.setattr(without_api, "run", lambda *argv: said.get(argv[0]) or LOG)
    return tmp_path


def told(**params: Any) -> list[str]:
    with pytest.raises(Ended) as ended:
        without_api.main(Task(params, check_mode=False), "sparkloom", **params)
    return list(ended.value.result["told"])


def test_a_disk_that_is_full_is_told_where_no_api_is_for_it(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server's database found no room; each Spark told of units and ranks alone."""
    measured = node / "sparkloom.prom"
    monkeypatch.setattr(without_api, "MEASURED", measured)
    assert len(told()) == 3, "where no metrics are"
    of = 'folder="/var/lib"'
    measured.write_text(f'{disks.FREE[0]}{{{of}}} 0\n{disks.HELD[0]}{{{of},holder="/home/anna"}} 3221225472\n')
    assert told()[0] == "0.0 GiB free on the file system of /var/lib; /home/anna holds most, 3.0 GiB"


def test_a_rank_is_told_by_its_log_and_by_its_processes(node: Path) -> None:
    log = node / "logs/sparkloom_glm-rank0-0_uid-1/engine/1.log"
    log.parent.mkdir(parents=True)
    log.write_text(LOG)
    units = ["k3s.service loaded failed failed Lightweight Kubernetes", "K3s: no etcd"]
    *first, rank = told()
    assert first == units and rank.startswith("glm-rank0-0 does not run; its log until ")
    assert rank.endswith(": [sparkloom rank 0 epoch 2] serving: every rank is ready")
    inside = node / "cgroups/kubepods/poduid_1/x"
    inside.mkdir(parents=True)
    (inside / "cgroup.procs").write_text("77\n")
    (node / "proc/77").mkdir(parents=True)
    (node / "proc/77/status").write_text("Name:\tsglang\nNSpid:\t77\t9\n")
    seen = told(pods="glm-rank*-0", lines=1)
    assert "glm-rank0-0 runs, start 2" in seen[2] and seen[3:] == ["a last word"]
    assert told(pods="chat-rank*-0")[2:] == ["no rank was started here"]
