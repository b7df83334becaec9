"""What to measure between nodes, and what the figures mean: tables over perftest's own output."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.base.finding import errors
from sparkloom.inputs import inventory
from sparkloom.launch import fabric
from sparkloom.site import perftest
from sparkloom.site.checks import bandwidth
from sparkloom.site.checks import bandwidth_verdict as verdict
from sparkloom.site.tasks import fabric as tasks
from tests import places

SITE = inventory.load()
PLAN = fabric.plan(SITE)
NODES = list(PLAN.nodes)
SHAPE = {"size": 1 << 20, "iterations": 2000, "queue_pairs": 4}
DATA = places.DATA / "perftest"
BW = """\
 Dual-port       : OFF          Device         : {device}
 Mtu             : {mtu}[B]
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    8000             {gbit}              {gbit}              0.011
"""
LAT = """\
 Mtu             : 4096[B]
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]  99% percentile[usec]
 8       2000          1.40           7.90         {us}              1.51            0.1             1.8
"""


def plan() -> dict[str, Any]:
    return bandwidth.tests(SITE, PLAN, NODES, **SHAPE)


@pytest.mark.parametrize("count", range(2, 8))
def test_every_direction_once_and_nobody_twice_in_a_round(count: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    turns = bandwidth.rounds(nodes)
    assert sorted(pair for turn in turns for pair in turn) == sorted(itertools.permutations(nodes, 2))
    assert all(len(set(busy := [n for pair in turn for n in pair])) == len(busy) for turn in turns)


def test_each_server_listens_once_for_each_run_of_its_clients() -> None:
    planned = plan()
    asked = {(run["peer"], run["port"]) for turn in planned["rounds"] for runs in turn.values() for run in runs}
    listened = [(run["address"], port) for runs in planned["serve"].values() for run in runs for port in (run["port"],)]
    assert sorted(listened) == sorted(asked) and len(set(listened)) == len(listened) == 4 * 3 * 2
    ports = {
        node: [p for run in runs for p in (run["port"], run["port"] + 1)] for node, runs in planned["serve"].items()
    }
    assert all(len(set(found)) == len(found) for found in ports.values()), "bandwidth and latency never share a port"


def test_the_function_that_stays_on_the_host_is_measured() -> None:
    interfaces = {run["interface"] for turn in plan()["rounds"] for runs in turn.values() for run in runs}
    assert interfaces == {"enp1s0f0v1", "enP2p1s0f0v1"}


def test_a_run_that_could_fill_unified_memory_is_refused() -> None:
    with pytest.raises(InputError, match="at most 64"):
        bandwidth.tests(SITE, PLAN, NODES, size=1 << 30, iterations=1, queue_pairs=1)


def test_a_misspelt_threshold_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'rail_gbit'"):
        bandwidth.thresholds(SITE.fabric, {"rail_gbits": 1})


# --- what the figures mean ------------------------------------------------------------------------------------


def judge(spoil: Any = None, nodes: list[str] = NODES, missing: str = "") -> tuple[list[Any], dict[str, Any]]:
    """Rows and report of a healthy fabric, except for what `spoil` does to each run."""
    results: dict[str, list[dict[str, Any]]] = {}
    for turn in bandwidth.tests(SITE, PLAN, nodes, **SHAPE)["rounds"]:
        for client, runs in turn.items():
            for run in runs:
                whole = {
                    **run,
                    "ping": {"ok": True, "small_ok": True},
                    "has_gid": True,
                    "gbit": 98.0,
                    "mtu": 4096,
                    "us": 1.5,
                }
                whole |= (spoil(run) or {}) if spoil else {}
                if whole["gbit"]:
                    whole[perftest.BANDWIDTH] = BW.format(device="rocep1s0f0v1", mtu=whole["mtu"], gbit=whole["gbit"])
                    whole[perftest.LATENCY] = LAT.format(us=whole["us"])
                if missing not in (run["client"], run["server"]):
                    results.setdefault(client, []).append(whole)
    limits = bandwidth.thresholds(SITE.fabric, {})
    left_out = list(verdict.unread({missing: {"missing": ["ib_write_bw"]}})) if missing else []
    found = bandwidth.measures(results, limits)
    judged = list(bandwidth.pairs(found, limits))
    findings = [*left_out, *verdict.findings(found, judged, limits)]
    return findings, verdict.report("gb10", found, judged, left_out, limits, "now", {})


def test_a_healthy_fabric_has_no_rows() -> None:
    findings, report = judge()
    assert findings == [] and report["verdict"] == "as fast as it should be"
    assert len(report["pairs"]) == 12
    assert report["pairs"][0]["rails"]["a"] == {
        "gbit": 98.0, "latency_us": 1.5, "mtu": 4096, "said": "", "verdict": "ok",
    }  # fmt: skip


def of(node: str, rail: str = "") -> Any:
    return lambda run: node in (run["client"], run["server"]) and rail in ("", run["rail"])


CASES = [
    ({"gbit": 12.6}, "degraded initialisation", "shut all nodes down, then take their power cables out of the wall"),
    ({"gbit": 12.6, "errors": 900}, "slower than the rail should be", "LnkSta"),
    ({"gbit": 2.1}, "slower than the rail should be", "LnkSta"),
    ({"ping": {"ok": False, "small_ok": True}, "gbit": 0}, "MTU 1500 on the switch", "jumbo frames"),
    ({"ping": {"ok": False, "small_ok": False}, "gbit": 0}, "one end is silent", "the cable"),
    ({"gbit": 54.0, "mtu": 1024}, "MTU 1500 on the switch", "jumbo frames"),
    ({"gbit": 54.0}, "slower than the rail should be", "LnkSta"),
    ({"has_gid": False, "gbit": 0}, "no RoCE v2 GID", "playbooks/fabric.yml"),
    ({"us": 40.0}, "slow to answer", "other traffic"),
    ({"gbit": 0, perftest.BANDWIDTH: " Couldn't connect to 192.168.100.28:18515"}, "RDMA fails", "firewall"),
]


@pytest.mark.parametrize(("facts", "word", "advice"), CASES)
def test_a_node_that_is_amiss_is_named_once_per_rail(facts: dict[str, Any], word: str, advice: str) -> None:
    bad = of("spark2")
    findings, report = judge(lambda run: facts if bad(run) else None)
    assert {(finding.where, finding.rule) for finding in findings} == {
        ("spark2", "rail a to every other node"), ("spark2", "rail b to every other node"),
    }  # fmt: skip
    assert all(word in finding.message and advice in finding.fix for finding in errors(findings)) and errors(findings)
    assert report["verdict"] == word


def test_one_dead_rail_is_one_rail_only() -> None:
    bad = of("spark3", "b")
    findings, report = judge(lambda run: {"ping": {"ok": False, "small_ok": False}, "gbit": 0} if bad(run) else None)
    assert report["verdict"] == "one rail only (one end is silent)"
    assert [(finding.where, finding.rule) for finding in errors(findings)] == [("spark3", "rail b to every other node")]
    assert {finding.severity for finding in findings if "one rail only" in finding.message} == {"warning"}


def test_one_bad_direction_names_its_two_nodes() -> None:
    findings, _ = judge(lambda run: {"gbit": 13.0} if (run["client"], run["server"]) == ("spark1", "spark4") else None)
    assert {(finding.where, finding.rule) for finding in findings} == {
        ("spark1", "rail a to spark4"),
        ("spark1", "rail b to spark4"),
    }


def test_two_nodes_cannot_tell_which_of_them_it_is() -> None:
    findings, _ = judge(lambda run: {"gbit": 13.0}, nodes=NODES[:2])
    assert {(finding.where, finding.rule) for finding in findings if "rail a" in finding.rule} == {
        ("spark1", "rail a to spark2"), ("spark2", "rail a to spark1"),
    }  # fmt: skip


def test_rails_that_share_something_are_slower_together() -> None:
    findings, report = judge(lambda run: {"gbit": 85.0})
    assert report["verdict"] == "the rails are slower together than apart"
    assert len(findings) == 12 and all("170 Gb/s on all rails at once" in finding.message for finding in findings)


def test_without_perftest_nothing_is_called_good() -> None:
    findings, report = judge(missing="spark1")
    assert report["verdict"] == "perftest is not installed" and len(report["pairs"]) == 6
    assert [(finding.where, finding.fix) for finding in errors(findings)] == [
        ("spark1", "apt-get install perftest on the node, then playbooks/verify.yml again")
    ]


@pytest.mark.parametrize(
    ("rails", "link", "each", "together", "stuck"),
    [(2, 200, 80, 175, 25), (1, 200, 87.5, 87.5, 25), (2, 100, 40, 87.5, 20), (1, 100, 87.5, 87.5, 25),
     (2, 40, 16, 35, 8), (1, 25, 21.875, 21.875, 10.9375)],
)  # fmt: skip
def test_thresholds_follow_the_number_and_the_speed_of_the_rails(
    rails: int, link: int, each: float, together: float, stuck: float
) -> None:
    fabric = SITE.fabric.model_copy(update={"rails": SITE.fabric.rails[:rails], "rail_gbit": link})
    limits = bandwidth.thresholds(fabric, {})
    assert (limits.rail_gbit, limits.sum_gbit, limits.degraded_gbit) == (each, together, stuck)
    assert bandwidth.thresholds(fabric, {"rail_gbit": 1}).rail_gbit == 1, "a site has the last word"


# --- perftest's own output ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(DATA.glob("*.txt")), ids=lambda path: path.stem)
def test_what_perftest_really_printed_is_read(path: Path) -> None:
    """Captured in the virtual machines (Soft-RoCE): the name says which program and what to expect."""
    text = path.read_text()
    result = perftest.read(text)
    if "failed" in path.stem:
        assert result is None and perftest.why(text) not in ("", "it printed nothing")
        return
    assert result is not None and result.device.startswith("roce") and result.mtu in (1024, 4096)
    figure = result.gbit if path.stem.startswith("bw") else result.microseconds
    assert figure is not None and figure > 0


def test_a_run_without_figures_has_none() -> None:
    assert perftest.read(" #bytes     #iterations    BW peak[Gb/sec]\n Completion with error at client") is None
    assert perftest.read("") is None and perftest.why("") == "it printed nothing"


def test_the_first_run_after_a_boot_measures_and_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "kept", lambda site: tmp_path)
    seen = {node: {"boot": f"{node}-1", "missing": []} for node in NODES}
    slow = [{**run, "gbit": 12.9} for turn in plan()["rounds"] for runs in turn.values() for run in runs]
    for run in slow:
        run |= {"ping": {"ok": True, "small_ok": True}, "has_gid": True, perftest.LATENCY: LAT.format(us=1.5)}
        run[perftest.BANDWIDTH] = BW.format(device="rocep1s0f0v1", mtu=4096, gbit=run["gbit"])

    def context() -> Any:
        hosts = {node: {"nodes": seen[node], "runs": [run for run in slow if run["client"] == node]} for node in NODES}
        return SimpleNamespace(cluster=SITE, vars={"hostvars": hosts, "groups": {"sparks": NODES}})

    assert tasks.bandwidth_due(context(), "nodes") == {"due": True}
    told = tasks.bandwidth_judge(context(), "nodes", "runs", {}, warn=True)
    assert not told["failed"] and told["verdict"] == "degraded initialisation"
    assert "12.9 Gb/s" in told["warnings"][0] and "out of the wall for a minute" in told["warnings"][0]
    assert tasks.bandwidth_due(context(), "nodes") == {"due": False}, "remembered for each node and boot"
    seen["spark3"] = {"boot": "spark3-2", "missing": []}
    assert tasks.bandwidth_due(context(), "nodes") == {"due": True}
    seen.update({node: {"boot": "x", "missing": ["ib_write_bw"]} for node in NODES})
    assert tasks.bandwidth_due(context(), "nodes") == {"due": False}, "nothing can measure"
    assert tasks.bandwidth_judge(context(), "nodes", "runs", {})["failed"], "verify fails"
