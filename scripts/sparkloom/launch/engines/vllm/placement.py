"""How somebody's vLLM command lies on its nodes, read as `launch.parallel`: by --nnodes, or by Ray.

Recipes say the same in several ways. What only says how the ranks find each other is ours to say (the adapter
writes --nnodes, --node-rank, --master-addr and --headless for the mp backend); what Ray alone can do is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkloom.inputs.profile import FlagValue

# Profile key -> part of launch.parallel; the engine's own default is 1.
SIZES = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "data_parallel_size": "dp"}
# What follows from the placement and the inventory, whoever starts the ranks.
MEETING = {
    "nnodes": "launch.parallel.nodes",
    "node_rank": "the node's place in the inventory",
    "master_addr": "rank 0's address on the first rail",
    "master_port": "the group's own port",
    "headless": "every rank but the first",
    "host": "the pod's own address",
    "port": "the Service's port",
    "data_parallel_size_local": "one GPU in a Spark",
    "data_parallel_rank": "the node's place in the inventory",
    "data_parallel_start_rank": "the node's place in the inventory",
    "data_parallel_address": "rank 0's address on the first rail",
    "data_parallel_rpc_port": "the group's own port",
}
BACKENDS = {"mp": "what --nnodes works with, written for you", "uni": "one rank; nothing to say"}
RAY_TRANSLATED = "Ray placed the ranks; here one pod a Spark does, and they meet by --nnodes with the mp backend"
# What Ray alone does: it cannot be said with --nnodes.
RAY_ONLY = {
    "data_parallel_backend": "copies that Ray starts where it finds GPUs; here parallel.dp places them",
    "ray_workers_use_nsight": "profiling of Ray's workers",
    "placement_group": "a placement of Ray's own",
}
RAY_ENV = {
    "RAY_memory_monitor_refresh_ms": "Ray's own memory monitor", "RAY_memory_usage_threshold": "likewise",
    "RAY_CGRAPH_get_timeout": "Ray's compiled graphs", "VLLM_USE_RAY_COMPILED_DAG": "Ray's compiled graphs",
    "VLLM_USE_RAY_SPMD_WORKER": "Ray's workers", "VLLM_USE_RAY_WRAPPED_PP_COMM": "Ray's pipelines",
    "VLLM_RAY_PER_WORKER_GPUS": "GPUs of a Ray worker", "VLLM_RAY_BUNDLE_INDICES": "a placement of Ray's own",
    "VLLM_RAY_DP_PACK_STRATEGY": "copies that Ray places",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Remark:
    """One word of the source: what became of it, and whether anything is lost."""

    what: str
    why: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    parallel: dict[str, int]  # nodes, tp, pp, dp (where more than 1), ep: as a profile writes it
    flags: dict[str, FlagValue]  # what is left for `launch:`
    env: dict[str, str]
    remarks: list[Remark] = field(default_factory=list)

    @property
    def lost(self) -> list[Remark]:
        return [remark for remark in self.remarks if remark.lost]


def read(flags: Mapping[str, FlagValue], env: Mapping[str, str] | None = None, nodes: int | None = None) -> Placement:
    """The flags of `vllm serve` under the keys that a profile gives them; `nodes` where the source says it elsewhere.

    ValueError where the ranks of the command do not fill the nodes: it could not start there.
    """
    sizes = {part: _size(flags, key) for key, part in SIZES.items()}
    ranks = sizes["tp"] * sizes["pp"] * sizes["dp"]
    told = nodes if nodes is not None else _size(flags, "nnodes") if "nnodes" in flags else ranks
    if told != ranks:
        shown = " x ".join(f"{part} {size}" for part, size in sizes.items() if size > 1 or part == "tp")
        raise ValueError(
            f"{shown} makes {ranks} rank(s) for {told} node(s), and a Spark has one GPU; write sizes whose product is "
            f"{told}, or that many nodes"
        )
    spread = flags.get("enable_expert_parallel") is True and ranks // sizes["pp"] > 1
    parallel = {"nodes": ranks, "tp": sizes["tp"], "pp": sizes["pp"]}
    parallel |= {"dp": sizes["dp"]} if sizes["dp"] > 1 else {}
    parallel["ep"] = sizes["tp"] * sizes["dp"] if spread else 1
    kept: dict[str, FlagValue] = {}
    remarks: list[Remark] = []
    for key, value in flags.items():
        remark = _remark(key, value)
        if remark:
            remarks.append(remark)
        elif key not in SIZES and key != "enable_expert_parallel":
            kept[key] = value
    own = {name: value for name, value in (env or {}).items() if name not in RAY_ENV}
    remarks += [Remark(name, f"{RAY_ENV[name]}; no Ray runs here") for name in env or {} if name in RAY_ENV]
    return Placement(parallel, kept, own, remarks)


def _remark(key: str, value: FlagValue) -> Remark | None:
    if key in MEETING:
        return Remark(key, f"follows from the inventory: {MEETING[key]}")
    if key == "distributed_executor_backend":
        if value == "ray":
            return Remark(f"{key} ray", RAY_TRANSLATED)
        return Remark(f"{key} {value}", BACKENDS[str(value)]) if value in BACKENDS else None
    if key == "data_parallel_backend" and value == "mp":
        return Remark(f"{key} mp", "the one that --nnodes works with")
    if key in RAY_ONLY:
        return Remark(f"{key} {value}", RAY_ONLY[key], lost=True)
    return None


def _size(flags: Mapping[str, FlagValue], key: str) -> int:
    value = flags.get(key, 1)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{key}: expected a whole number from 1, found {value!r}")
    return value


def ray(words: Iterable[str]) -> Remark | None:
    """What a `ray ...` command line beside `vllm serve` means here; None where the words are no Ray's."""
    line = list(words)
    program = line[0].rsplit("/", 1)[-1] if line else ""
    if program != "ray":
        return None
    shown = " ".join(line[:3])
    asked = next((word for word in line[1:] if word.split("=")[0] in ("--resources", "--labels")), None)
    if line[1:2] == ["start"] and asked:
        return Remark(
            " ".join(line), f"{asked} places actors by resources of its own, which nothing here reads", lost=True
        )
    if line[1:2] == ["start"]:
        return Remark(shown, f"starts Ray's cluster: {RAY_TRANSLATED}")
    if line[1:2] in (["stop"], ["status"]):
        return Remark(shown, "nothing to stop or to ask: no Ray runs here")
    return Remark(" ".join(line), "a Ray command that has no counterpart here", lost=True)
