"""Every port has one owner: what each engine takes in each release, what we take, and a clash refused by name."""

from __future__ import annotations

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.inputs.catalogs import releases
from sparkloom.launch import engines, ports
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.render.manifests import supervision
from tests.render.manifests import case

ULTRA, VLLM = case.ULTRA, case.SOLO


def taken(engine: str, release: str, nodes: int, **flags: object) -> list[ports.Port]:
    return engines.get(engine).ports(flags, {}, release, nodes)  # type: ignore[arg-type]


@pytest.mark.parametrize("release", releases.known("sglang"))
def test_dp_attention_s_ports_behind_the_rendezvous_are_nobody_else_s(release: str) -> None:
    """Our control port was 20001, the first of them."""
    found = taken("sglang", release, 4, enable_dp_attention=True, dp_size=4)
    numbers = {number for port in found for number in range(port.number, port.last + 1)}
    assert {20000, 20001, 20002, 20003, 20004, 20005, 20013, 30000} <= numbers
    assert ports.clashes([*found, *ports.OURS]) == []


def test_the_row_grew_with_the_releases() -> None:
    last = {r: max(p.last for p in taken("sglang", r, 4, enable_dp_attention=True) if "DP" in p.what and p.count > 1)
            for r in ("0.5.13", "0.5.14", "0.5.23")}  # fmt: skip
    assert last == {"0.5.13": 20005, "0.5.14": 20006, "0.5.23": 20006}


def test_on_one_node_the_row_follows_the_api() -> None:
    assert {30234, 30013} <= {port.number for port in taken("sglang", "0.5.12", 1, enable_dp_attention=True)}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (ULTRA, f"launch.nccl_port={ports.CONTROL}", "Sparkloom's supervisors"),
        (ULTRA, "launch.nccl_port=20000", "rendezvous of the ranks"),
        (ULTRA, "launch.nccl_port=70000", "70000 is no port; expected 1 to 65535"),
        (VLLM, f"env.VLLM_PORT='{ports.PROBES}'", "Sparkloom's probes"),
        (VLLM, "env.VLLM_PORT='7995'", "the API of vllm"),
    ],
)
def test_a_clash_is_refused_by_name(name: str, change: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        case.launch(name, None, change)
    (problem, *_) = refused.value.problems
    assert words in problem.message and problem.rule == "port-clash"
    assert change.partition("=")[0].removeprefix("launch.") in problem.message


@pytest.mark.parametrize("name", profile.names())
def test_no_shipped_profile_has_a_clash_and_the_plan_names_our_ports(name: str) -> None:
    launch = case.launch(name)
    assert ports.clashes(launch.ports) == []
    order = GroupPlan.of(supervision.plan(launch, "refuse"))
    assert (order.control_port, order.probe_port) == (ports.CONTROL, ports.PROBES)
