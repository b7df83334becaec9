"""The ports that SGLang takes beside its API: read in `PortArgs` and its callers, releases 0.5.9 to 0.5.23."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.profile import FlagValue
from sparkloom.launch.ports import RENDEZVOUS, Port

ALONE = 233  # DP attention on one node: this far behind the API's port (ZMQ_TCP_PORT_DELTA)
HANDSHAKE = 13  # where node 0 tells the others the workers' ports, behind the rendezvous or the API
LOADS_SINCE = Version("0.5.14")  # one more port, for the ranks' loads
RUST_SINCE = Version("0.5.17")  # SGLANG_RUST_SERVER: one more for each rank of data parallelism
GRPC = 10000  # behind the API's port unless SGLANG_GRPC_PORT says another


def ports(api: int, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int) -> list[Port]:
    found = [Port(RENDEZVOUS, "rendezvous of the ranks")] if nodes > 1 else []
    if flags.get("enable_dp_attention") is True:
        found += _data_parallel(api, flags, env, release, nodes)
    found += _asked(flags, "nccl_port", "torch.distributed")
    if flags.get("disaggregation_mode") in ("prefill", "decode"):
        found += _asked(flags, "disaggregation_bootstrap_port", "disaggregation", 8998)
    if flags.get("remote_instance_weight_loader_start_seed_via_transfer_engine") is True:
        found += _asked(flags, "engine_info_bootstrap_port", "weights for other instances", 6789)
    if flags.get("grpc_mode") is True or "SGLANG_GRPC_PORT" in env:
        grpc = env.get("SGLANG_GRPC_PORT", "")
        found.append(Port(int(grpc) if grpc.isdigit() else api + GRPC, "gRPC", "env.SGLANG_GRPC_PORT" if grpc else ""))
    return found


def _data_parallel(
    api: int, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int
) -> list[Port]:
    """Tokenizer, detokenizer, RPC, metrics, scheduler: in a row behind the rendezvous."""
    number = releases.number(release) or LOADS_SINCE
    count = 6 if number >= LOADS_SINCE else 5
    size = flags.get("dp_size")
    if number >= RUST_SINCE and env.get("SGLANG_RUST_SERVER", "0") not in ("", "0", "false"):
        count += size if isinstance(size, int) else 1
    first = RENDEZVOUS if nodes > 1 else api + ALONE
    row = Port(first + 1, "DP attention of sglang", "", count)
    return [row, Port((RENDEZVOUS if nodes > 1 else api) + HANDSHAKE, "DP attention's handshake")]


def _asked(flags: Mapping[str, FlagValue], name: str, what: str, default: int | None = None) -> list[Port]:
    value = flags.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        return []
    return [Port(value, what, name if name in flags else "")]
