"""What every rank is told about the fabric: nothing left to NCCL's guess, nothing set that it decides better."""

from __future__ import annotations

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load
from sparkloom.launch.resolve import Launch, Rank, resolve

SHIPPED = load()
LAUNCHES = {name: resolve(profile.load(name), SHIPPED) for name in profile.names()}
GROUPS = [name for name, launch in LAUNCHES.items() if len(launch.ranks) > 1 and launch.engine != "llamacpp"]
OTHERS = [name for name in LAUNCHES if name not in GROUPS]
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def values(rank: Rank) -> dict[str, str]:
    return {variable.name: variable.value for variable in rank.env}


def ranks(name: str) -> list[tuple[Rank, dict[str, str]]]:
    return [(rank, values(rank)) for rank in LAUNCHES[name].ranks]


def one_rail() -> Launch:
    fabric = SHIPPED.fabric.model_copy(update={"rails": SHIPPED.fabric.rails[:1]})
    return resolve(profile.load(ULTRA), SHIPPED.model_copy(update={"fabric": fabric}))


@pytest.mark.parametrize("name", GROUPS)
def test_a_missing_fabric_is_an_error_on_every_rank(name: str) -> None:
    assert all(env["NCCL_NET"] == "IB" for _, env in ranks(name))


@pytest.mark.parametrize("name", GROUPS)
def test_both_rails_and_nothing_else_are_matched(name: str) -> None:
    assert {env["NCCL_IB_HCA"] for _, env in ranks(name)} == {"=rocep1s0f0v0,roceP2p1s0f0v0"}


@pytest.mark.parametrize("name", GROUPS)
def test_every_rank_names_its_own_address_and_interface(name: str) -> None:
    host = {"sglang": "SGLANG_HOST_IP", "vllm": "VLLM_HOST_IP"}[LAUNCHES[name].engine]
    for rank, env in ranks(name):
        assert env[host] == rank.place.endpoints[0].address
        assert (env["NCCL_SOCKET_IFNAME"], env["GLOO_SOCKET_IFNAME"], env["TP_SOCKET_IFNAME"]) == (
            "=net1",
            "net1",
            "net1",
        )
    assert len({env[host] for _, env in ranks(name)}) == len(LAUNCHES[name].ranks)


@pytest.mark.parametrize("name", list(LAUNCHES))
def test_no_gid_index_and_no_empty_value(name: str) -> None:
    """An empty NCCL_IB_GID_INDEX is read as 0, which is the link-local entry."""
    for _, env in ranks(name):
        assert "NCCL_IB_GID_INDEX" not in env
        assert all(env.values())


@pytest.mark.parametrize("name", list(LAUNCHES))
def test_every_derived_variable_says_why(name: str) -> None:
    silent = [
        v.name for rank in LAUNCHES[name].ranks for v in rank.env if v.origin.kind != "profile" and not v.origin.why
    ]
    assert silent == []


@pytest.mark.parametrize("name", GROUPS)
def test_nvls_is_off_and_the_proof_is_logged(name: str) -> None:
    assert all((env["NCCL_NVLS_ENABLE"], env["NCCL_DEBUG"]) == ("0", "INFO") for _, env in ranks(name))


@pytest.mark.parametrize("name", OTHERS)
def test_ranks_that_speak_no_nccl_are_told_nothing(name: str) -> None:
    assert [key for _, env in ranks(name) for key in env if key.startswith(("NCCL_", "GLOO_", "TP_"))] == []


def test_one_rail_is_matched_alone() -> None:
    (env,) = {tuple(sorted(values(rank).items())) for rank in one_rail().ranks[:1]}
    assert dict(env)["NCCL_IB_HCA"] == "=rocep1s0f0v0"
    assert "NCCL_IB_SUBNET_AWARE_ROUTING" not in dict(env)


def test_a_profile_has_the_last_word() -> None:
    loaded = profile.load(ULTRA, overrides=["env.NCCL_IB_GID_INDEX='5'", "env.NCCL_NET=Socket"])
    env = values(resolve(loaded, SHIPPED).ranks[2])
    assert (env["NCCL_IB_GID_INDEX"], env["NCCL_NET"]) == ("5", "Socket")


def test_a_lossless_fabric_is_told_to_nccl_and_another_is_not() -> None:
    fabric = SHIPPED.fabric.model_copy(update={"lossless": True})
    launch = resolve(profile.load(ULTRA), SHIPPED.model_copy(update={"fabric": fabric}))
    assert {values(rank).get("NCCL_IB_TC") for rank in launch.ranks} == {"106"}, "DSCP 26, and ECN's bit"
    assert all("NCCL_IB_TC" not in env for _, env in ranks(ULTRA))
