"""Golden manifests of profiles that differ in kind: see tests/golden_files.py for how to renew them."""

from __future__ import annotations

import pytest

from sparkloom.render import manifests, pack
from sparkloom.render.manifests import supervision
from tests import golden_files
from tests.render.manifests import case

REPRESENTATIVE = (
    case.ULTRA,  # four ranks, two rails, SGLang
    "nvidia--qwen3.5-397b-a17b-nvfp4",  # four ranks, EP=1
    "nvidia--minimax-m2.5-nvfp4--2node",  # two of four nodes
    case.SOLO,  # one node, vLLM: no rails, not privileged
    case.TRTLLM,  # one node, with an engine file
    case.RPC,  # llama.cpp: rails without RDMA
)


@pytest.fixture(autouse=True)
def short_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor's own text would be most of every golden file; tests/onnode/rank judges it."""
    monkeypatch.setattr(pack, "program", lambda name: pack.Program(name, "stamp", f"# onnode/{name}\n".encode()))
    monkeypatch.setattr(supervision, "patterns", lambda engine: f"# of the rules for {engine}\n")


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_golden_manifests(name: str) -> None:
    golden_files.check(name, "manifests.yaml", manifests.to_yaml(case.build(name)))


def test_golden_manifests_on_one_rail_without_privileges() -> None:
    where = case.one_rail().model_copy(update={"security_mode": "device-plugin"})
    golden_files.check(
        case.ULTRA, "manifests-one-rail-device-plugin.yaml", manifests.to_yaml(case.build(case.ULTRA, where))
    )


def test_golden_manifests_of_three_in_a_ring() -> None:
    """Red before: fabric.ring was no key."""
    golden_files.check(case.PIPELINE, "manifests-ring.yaml", manifests.to_yaml(case.build(case.PIPELINE, case.ring())))


def test_same_input_gives_the_same_bytes() -> None:
    assert manifests.to_yaml(case.build()) == manifests.to_yaml(case.build())
