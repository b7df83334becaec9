"""vLLM: `vllm serve`, one process per rank; ranks beyond the first are headless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import FlagValue, LoadedSketch
from sparkloom.launch import ports
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.engines.vllm import placement
from sparkloom.launch.engines.vllm.dialect import DIALECT
from sparkloom.launch.engines.vllm.ranges import RANGES
from sparkloom.launch.values import EnvVar, Origin, Place, Setting, Topology

RPC, MASTER, MASTERS = 29550, 29500, 10  # vllm/config/parallel.py and utils/network_utils.py, 0.17.1 to 0.33.0


class VLLM(base.Adapter):
    name = "vllm"
    package = "vllm"
    no_copies = ""
    port = 8000
    schedulers: tuple[str, ...] = ("VLLM::EngineCore", "VLLM::Worker")
    progress = (
        base.SHARDS,
        (r"Starting to load model", "loading weights"),
        (r"Model loading took", "weights loaded"),
        (r"KV cache size", "KV cache allocated"),
        (r"Capturing CUDA graph", "capturing graphs"),
        (r"Graph capturing finished", "graphs captured"),
    )
    works = (r"Engine \d+: Avg prompt throughput: (?!0\.0 tokens/s, Avg generation throughput: 0\.0)",)
    metrics = "/metrics"
    patient_flags = ("distributed_timeout_seconds", "cpu_distributed_timeout_seconds")
    patient_env = ("VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS")
    key_words = base.KEY_CONFIG
    dialect = DIALECT
    ranges = RANGES
    called: Mapping[str, str] = {
        "memory": "gpu_memory_utilization",
        "context": "max_model_len",
        "requests": "max_num_seqs",
        "prefill": "max_num_batched_tokens",
        "cache": "kv_cache_dtype",
        "model name": "served_model_name",
        "tools": "tool_call_parser",
    }
    reserved = frozenset(
        {"model", "nnodes", "node_rank", "master_addr", "master_port", "headless", "host", "port"}
        | {"tensor_parallel_size", "pipeline_parallel_size", "enable_expert_parallel", "data_parallel_size_local"}
        | {"data_parallel_rank", "data_parallel_start_rank", "data_parallel_address"}
    )

    usual = True
    starts: tuple[tuple[str, ...], ...] = (
        ("vllm", "serve"),
        ("python3", "-m", "vllm.entrypoints.openai.api_server"),
        ("python", "-m", "vllm.entrypoints.openai.api_server"),
    )
    published = "vllm/vllm-openai:v{release}"
    placed: Mapping[str, str] = {
        "model": "model",
        "tensor_parallel_size": "tp",
        "pipeline_parallel_size": "pp",
        "data_parallel_size": "dp",
        "enable_expert_parallel": "experts",
        "nnodes": "nodes",
        "distributed_executor_backend": "backend",
    }
    sited: Mapping[str, str] = {
        **{flag: f"follows from the inventory: {why}" for flag, why in placement.MEETING.items() if flag != "nnodes"},
        "api_key": base.KEY,
    }
    lost: Mapping[str, str] = placement.RAY_ONLY
    sited_env: Mapping[str, str] = {name: f"{why}; no Ray runs here" for name, why in placement.RAY_ENV.items()}

    def derived(self, loaded: LoadedSketch, topology: Topology) -> list[Setting]:
        parallel, model = topology.parallel, loaded.profile.model
        settings = [engine_setting("model", model.id, "positional; read from the mounted model store, offline")]
        if model.revision:
            settings.append(engine_setting("revision", model.revision, "the revision whose files were verified"))
        settings += [
            topology_setting("tensor_parallel_size", parallel.tp, "launch.parallel.tp"),
            topology_setting("pipeline_parallel_size", parallel.pp, "launch.parallel.pp"),
            topology_setting("enable_expert_parallel", parallel.ep > 1, "launch.parallel.ep"),
            *base.listening(self.port),
        ]
        if parallel.dp > 1:  # each node's copy and where the others are follow from nnodes, node_rank and master_addr
            settings.append(topology_setting("data_parallel_size", parallel.dp, "launch.parallel.dp"))
        if topology.distributed:
            settings += [
                topology_setting("nnodes", len(topology.places), "one Spark, one rank"),
                topology_setting(
                    "distributed_executor_backend", "mp", "the one that --nnodes works with; Ray has its own"
                ),
                topology_setting("master_addr", topology.address(topology.head), "rank 0's address on the first rail"),
                topology_setting("master_port", ports.RENDEZVOUS, "the group's rendezvous"),
            ]
        return settings

    def rank_settings(self, topology: Topology, place: Place) -> tuple[Setting, ...]:
        if not topology.distributed:
            return ()
        rank = topology_setting("node_rank", place.rank, "position in the inventory")
        return (rank, topology_setting("headless", True, "only rank 0 answers requests")) if place.rank else (rank,)

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        model = next(str(setting.value) for setting in settings if setting.name == "model")
        rest = [setting for setting in settings if setting.name != "model"]
        return ("vllm", "serve", model, *base.words([*rest, *self.rank_settings(topology, place)]))

    def ports(
        self, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int
    ) -> list[ports.Port]:
        """The rest of its ports are free ones that it picks, or from VLLM_PORT upwards."""
        found = super().ports(flags, env, release, nodes)
        if nodes > 1:
            found.append(ports.Port(ports.RENDEZVOUS, "rendezvous of the ranks"))
        size, rpc = flags.get("data_parallel_size"), flags.get("data_parallel_rpc_port")
        if isinstance(size, int) and size > 1:
            given = rpc if isinstance(rpc, int) else None
            said = "" if given is None else "data_parallel_rpc_port"
            found.append(ports.Port(given or RPC, "data parallelism's RPC", said))
            found.append(ports.Port(MASTER, "data parallelism's rendezvous", "", MASTERS))
        for name in ("VLLM_PORT", "VLLM_DP_MASTER_PORT"):
            if env.get(name, "").isdigit():
                found.append(ports.Port(int(env[name]), f"{name} and what follows it", f"env.{name}", MASTERS))
        return found

    def beside(self, words: Sequence[str]) -> str:
        remark = placement.ray(words)
        return remark.why if remark else ""

    def whole_prefill(self, flags: Mapping[str, FlagValue]) -> bool:
        return flags.get("enable_chunked_prefill") is False

    def environment(self, topology: Topology, place: Place, platform: Platform) -> list[EnvVar]:
        variables = [
            *base.offline_environment(),
            *base.cache_environment(("VLLM_CACHE_ROOT", "vllm")),
            *base.nccl_environment(topology, place),
        ]
        if topology.distributed:
            why = "the address that the other ranks reach; left alone vLLM takes the pod network's"
            variables.append(EnvVar("VLLM_HOST_IP", topology.address(place), Origin("fabric", why=why)))
        return variables


ADAPTER = VLLM()
