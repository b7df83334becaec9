"""The all-reduce check: its objects beside the serving pods', its verdicts by logs of real NCCL, and its course."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.measure.allreduce import run, verdict
from sparkloom.onnode import allreduce
from sparkloom.render import manifests, pack
from sparkloom.render.manifests import names
from tests import places
from tests.render.manifests import case, schemas

DATA = places.DATA / "allreduce"


def real(name: str) -> dict[str, str]:
    return {str(rank): (DATA / f"{name}.{rank}.log").read_text() for rank in (0, 1)}


def objects(where: Any = None) -> list[case.Object]:
    where = where or case.cluster()
    return run.objects(case.launch(case.ULTRA, where), where)


def pods(found: list[case.Object]) -> list[case.Object]:
    return [item["spec"]["template"] for item in case.of_kind(found, "Job")]


@pytest.mark.parametrize("where", [case.cluster(), case.one_rail(), case.cluster(security_mode="device-plugin")])
def test_objects_are_valid_in_every_release(where: Any) -> None:
    found = list(yaml.safe_load_all(manifests.to_yaml(objects(where))))
    assert [text for release in schemas.RELEASES for item in found for text in schemas.problems(item, release)] == []


@pytest.mark.parametrize("where", [case.cluster(), case.one_rail(), case.cluster(security_mode="device-plugin")])
def test_the_pods_have_the_serving_pods_network_shape(where: Any) -> None:
    """Rails, addresses, node, image, rights, devices and NCCL's variables are those of the engine's pods."""
    serving = case.pods(case.build(case.ULTRA, where))
    for mine, theirs in zip(pods(objects(where)), serving, strict=True):
        network = "k8s.v1.cni.cncf.io/networks"
        assert mine["metadata"]["annotations"][network] == theirs["metadata"]["annotations"][network]
        (one,), (other,) = mine["spec"]["containers"], theirs["spec"]["containers"]
        for key in ("runtimeClassName", "nodeSelector", "tolerations", "enableServiceLinks"):
            assert mine["spec"][key] == theirs["spec"][key]
        assert (one["image"], one["securityContext"]) == (other["image"], other["securityContext"])
        assert one["resources"]["limits"] == other["resources"]["limits"]
        told = {v["name"]: v.get("value") for v in one["env"]}
        for variable in other["env"]:
            if variable["name"].startswith("NCCL_") and not variable["name"].startswith("NCCL_DEBUG"):
                assert told[variable["name"]] == variable["value"], variable["name"]
        assert "valueFrom" not in json.dumps(one["env"]), "no secret is needed to add numbers"
        paths = {m["mountPath"] for m in one["volumeMounts"]}
        assert {m["mountPath"] for m in other["volumeMounts"] if m["mountPath"] == "/etc/nccl.conf"} <= paths


def test_ranks_meet_at_the_head_s_first_rail_and_no_service_leads_to_them() -> None:
    found, built = objects(), case.build()
    for number, pod in enumerate(pods(found)):
        env = {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}
        assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"]) == (str(number), "4", "192.168.100.11")
        assert len({v["name"] for v in pod["spec"]["containers"][0]["env"]}) == len(pod["spec"]["containers"][0]["env"])
        for item in case.of_kind(built, "Service"):
            assert not item["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (program,) = case.of_kind(found, "ConfigMap")
    mounts = pods(found)[0]["spec"]["containers"][0]["volumeMounts"]
    assert {m["subPath"] for m in mounts if "subPath" in m} == {*program["data"], *program["binaryData"]}
    assert pods(found)[0]["spec"]["containers"][0]["command"] == ["python3", mounts[0]["mountPath"]]
    assert base64.b64decode(program["binaryData"]["allreduce"]) == pack.program("allreduce").archive


@pytest.mark.parametrize(("name", "word"), [(case.SOLO, "one node"), (case.RPC, "no NCCL")])
def test_where_nothing_crosses_the_network_it_is_refused(name: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        run.objects(case.launch(name), case.cluster())


HEAD = "spark1:94:94 [0] NCCL"
IB_ONLY = f"""\
{HEAD} INFO NCCL_NET set by environment to IB
{HEAD} INFO NCCL_IB_HCA set by environment to =rocep1s0f0v0,roceP2p1s0f0v0
{HEAD} INFO NET/IB : No device found.
{HEAD} INFO Failed to initialize NET plugin IB
{HEAD} WARN Failed to initialize any NET plugin
{HEAD} INFO init.cc:1 -> 5
"""


def test_real_logs_over_sockets_are_no_success_at_any_speed() -> None:
    found = verdict.judge(real("socket"), rails=2, nodes=2, rail_gbit=10)
    assert found["verdict"] == "wrong-transport" and "socket" in found["why"] and found["busbw_gb_s"] == 4.037
    assert found["nccl"] == "2.28.9" and found["latency_us"] == 40.86 and len(found["sizes"]) == 9


def test_real_logs_inside_one_machine_are_not_the_fabric() -> None:
    found = verdict.judge(real("p2p"), rails=2, nodes=2)
    assert found["verdict"] == "wrong-transport" and found["transport"]["verdict"] == "local"


def test_a_killed_rank_is_a_failure_with_nccl_s_own_reason() -> None:
    found = verdict.judge(real("killed"), rails=2, nodes=2)
    assert found["verdict"] == "failed" and "peer is gone" in found["why"] and found["sizes"] == []


@pytest.mark.parametrize(
    ("busbw", "rails", "transport", "expected", "word"),
    [
        (22.4, 2, "roce", "ok", "two rails"),
        (21.9, 2, "roce", "ok", "18.1 were expected"),
        (20.1, 2, "roce", "ok", "NVIDIA's own script asks for 21.9"),  # a pair that works was called slow
        (13.6, 2, "roce", "slow", "as over one rail"),  # the most that one half's wire carries
        (11.0, 2, "roce", "slow", "as over one rail"),
        (2.1, 2, "roce", "slow", "as over sockets"),
        (9.6, 1, "roce", "ok", "one rail"),
        (8.7, 1, "roce", "slow", "8.8 were expected"),
        (22.4, 2, "roce-partial", "wrong-transport", "roce-partial"),
        (22.4, 2, "socket", "wrong-transport", "socket"),
    ],
)
def test_bandwidth_tells_the_ways_apart(
    monkeypatch: pytest.MonkeyPatch, busbw: float, rails: int, transport: str, expected: str, word: str
) -> None:
    report = SimpleNamespace(verdict=transport, why="as told")
    monkeypatch.setattr(verdict.nccl_log, "read_text", lambda text, **_: report)
    sizes = [{"bytes": 8192, "us": 30.0, "busbw_gb_s": 0.1}, {"bytes": 1 << 30, "us": 9e4, "busbw_gb_s": busbw}]
    line = json.dumps({"allreduce": {"nccl": "2.28.9", "sizes": sizes}})
    found = verdict.judge({"0": f"spark1 | {line}", "1": ""}, rails=rails, nodes=2)
    assert found["verdict"] == expected and word in found["why"] and found["latency_us"] == 30.0


def test_a_fabric_of_100_gbit_is_not_measured_by_one_of_200() -> None:
    wires = ((2, 200), (1, 200), (2, 100), (1, 100), (2, 25))
    assert [verdict.least(rails, gbit, 2) for rails, gbit in wires] == [18.1, 8.8, 8.8, 8.8, 2.2]


def test_what_nobody_measured_is_asked_for_by_what_is_near() -> None:
    assert [verdict.least(2, 200, nodes) for nodes in (2, 3, 4, 8)] == [18.1, 17.6, 17.6, 17.6]


def test_a_rank_that_dies_without_a_word_of_ours_is_quoted() -> None:
    logs = {"0": "", "1": "Traceback\nImportError: libcudart.so.13\n"}
    assert "rank 1 said last: ImportError: libcudart.so.13" in verdict.judge(logs, rails=2, nodes=2)["why"]
    assert "no rank left a log" in verdict.judge({"0": "", "1": ""}, rails=2, nodes=2)["why"]


def test_where_nccl_alone_failed_its_known_cure_is_the_reason_not_its_raw_words() -> None:
    """Two H100 whose pods were held to RoCE without a device (2026-11): torch's words have neither cause nor cure."""
    raw = "DistBackendError: NCCL error in: /pytorch/NCCLUtils.cpp:1 ncclInvalidUsage: failed\nLast error:\nnothing"
    said = f"{IB_ONLY}{json.dumps({'error': raw, 'rank': 0})}\n"
    why = verdict.judge({"0": said, "1": said.replace("spark1", "spark2")}, rails=2, nodes=2)["why"]
    assert "NCCL_NET=IB allows nothing else" in why and "no RoCE device" in why and "rdma link" in why
    assert "NCCLUtils" not in why and len(why) < 500
    silent = json.dumps({"error": raw, "rank": 0})
    assert "NCCLUtils" in verdict.judge({"0": silent}, rails=2, nodes=2)["why"], "without NCCL's log its words are all"


def test_an_error_of_a_rank_is_the_reason() -> None:
    said = json.dumps({"error": "ValueError: the sum is 3.0, 10.0 is right", "rank": 2})
    found = verdict.judge({"0": "", "2": said}, rails=2, nodes=4)
    assert found["verdict"] == "failed" and "rank 2: ValueError: the sum is 3.0" in found["why"]


class Cluster:
    """Answers as the cluster would: pods that run for some looks, then end."""

    def __init__(self, logs: dict[str, str], phases: list[list[str]], served: bool = False) -> None:
        self.namespace, self.logs, self.phases, self.served = "sparkloom", logs, phases, served
        self.made: list[str] = []
        self.gone: list[str] = []
        self.removed: list[int] = []

    def pods(self, labels: dict[str, str]) -> list[Any]:
        if labels == names.ENGINES:
            return [SimpleNamespace(metadata=SimpleNamespace(name="ultra-rank0-0"))] if self.served else []
        now = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        return [
            SimpleNamespace(metadata=SimpleNamespace(name=f"check{n}", labels={"sparkloom/rank": str(n)}),
                            status=SimpleNamespace(phase=phase)) for n, phase in enumerate(now)
        ]  # fmt: skip

    def put_config_map(self, name: str, data: dict[str, str], *, binary: dict[str, str]) -> bool:
        """The Jobs mount the program from it: without the bytes no pod starts (it was so until 2026-11-24)."""
        assert binary.keys() == {"allreduce"} and binary["allreduce"]
        self.made.append(name)
        return True

    def remove_config_map(self, name: str) -> None:
        self.gone.append(name)

    def whole(self, pod: str) -> str:
        return self.logs[pod[-1]]

    def create_namespaced_job(self, namespace: str, body: dict[str, Any]) -> None:
        assert self.old <= 0, "a Job of the same name is still there"
        self.made.append(body["metadata"]["name"])

    def delete_collection_namespaced_job(self, namespace: str, **options: Any) -> None:
        assert "fabric-check" in options["label_selector"]
        self.removed.append(len(self.made))
        self.old = 2  # they take a while to go

    def list_namespaced_job(self, namespace: str, **options: Any) -> Any:
        self.old -= 1
        return SimpleNamespace(items=[None] * max(self.old, 0))


def carry_out(cluster: Cluster) -> dict[str, Any]:
    clock = iter(range(0, 100_000, 5))
    return run.carry_out(case.launch(), objects(), cluster, cluster, lambda _: None,
                         sleep=lambda _: None, now=lambda: float(next(clock)))  # type: ignore[arg-type]  # fmt: skip


def test_the_course_of_a_check() -> None:
    cluster = Cluster({**real("socket"), "2": "", "3": ""}, [[], ["Pending"] * 4, ["Running"] * 4, ["Succeeded"] * 4])
    found = carry_out(cluster)
    assert found["verdict"] == "wrong-transport" and found["ranks"] == dict.fromkeys("0123", "Succeeded")
    assert len(cluster.made) == 5 and cluster.removed == [0, 5], "old ones go before, its own afterwards"
    assert cluster.gone == cluster.made[:1], "the program's ConfigMap goes too"


def test_one_that_fails_does_not_let_it_wait_for_ever() -> None:
    cluster = Cluster({**real("killed"), "2": "", "3": ""}, [["Running", "Failed", "Running", "Running"]])
    found = carry_out(cluster)
    assert found["verdict"] == "failed" and found["ranks"]["1"] == "Failed" and cluster.removed[-1] == 5


def test_nothing_is_made_while_a_model_is_served() -> None:
    cluster = Cluster({}, [[]], served=True)
    with pytest.raises(InputError, match="stop the model first"):
        carry_out(cluster)
    assert cluster.made == []


def gloo(busbw: float, sent: list[dict[str, int]], tcp: float = 2.0) -> dict[str, Any]:
    sizes = [{"bytes": 8192, "us": 300.0, "busbw_gb_s": 0.05}, {"bytes": 1 << 26, "us": 9e4, "busbw_gb_s": busbw}]
    line = {"allreduce": {"backend": "gloo", "nccl": None, "sizes": sizes, "sent": sent, "tcp_gb_s": tcp}}
    return verdict.judge({"0": json.dumps(line), "1": ""}, rails=2, nodes=2)


def test_gloo_is_judged_by_the_bytes_on_the_rails_and_by_what_tcp_carries_there() -> None:
    rails = [{"eth0": 2_000_000, "net1": 800_000_000, "net2": 0}] * 2
    found = gloo(1.1, rails)
    assert found["verdict"] == "ok" and "one TCP stream carries 2.00" in found["why"], found
    assert found["transport"]["verdict"] == "rails" and found["least_busbw_gb_s"] == 0.5
    assert gloo(0.4, rails)["verdict"] == "slow"


def test_gloo_beside_the_rails_is_no_success_at_any_speed() -> None:
    beside = [{"eth0": 1000, "net1": 800_000_000}, {"eth0": 790_000_000, "net1": 10_000_000}]
    found = gloo(1.9, beside)
    assert found["verdict"] == "wrong-transport" and "gloo took eth0" in found["why"] and "rank 1" in found["why"]


def test_a_backend_is_told_to_every_rank() -> None:
    found = run.objects(case.launch(case.ULTRA), case.cluster(), backend=run.GLOO)
    for number, pod in enumerate(pods(found)):
        env = {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}
        assert (env["ALLREDUCE_BACKEND"], env["ALLREDUCE_ADDRESS"]) == ("gloo", f"192.168.100.{11 + number}")


def test_sizes_grow_to_the_largest() -> None:
    assert allreduce.sizes(8192) == [8192]
    assert allreduce.sizes(1 << 30)[0] == 8192 and allreduce.sizes(1 << 30)[-1] == 1 << 30
    assert allreduce.sizes(100_000) == [8192, 32768, 100_000]


def test_a_rank_without_torch_says_so(tmp_path: Path) -> None:
    env = {**os.environ, "RANK": "0", "WORLD_SIZE": "2"}
    blocked = (
        "import sys; sys.modules['torch'] = None; import runpy; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked, str(pack.program("allreduce").keep(tmp_path))],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1 and re.search(r'"error": "\w+Error: ', done.stdout)
