"""SGLang: one server process group, one process per rank, rendezvous at the head's first rail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.dialect import Dialect
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import FlagValue, LoadedSketch
from sparkloom.launch import ports
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.engines.sglang import listeners
from sparkloom.launch.engines.sglang.ranges import RANGES
from sparkloom.launch.values import EnvVar, Origin, Place, Setting, Topology

# One thing, several spellings, oldest first; a spelling is one or more flags, each with its own value or None for
# "the value that the profile gives". Which one a release speaks is not written here: the first whose flags its
# catalog knows and does not call deprecated.
Spelling = tuple[tuple[str, FlagValue], ...]
DECODE_OFF, PREFILL_OFF = ("cuda_graph_backend_decode", "disabled"), ("cuda_graph_backend_prefill", "disabled")
SPELLINGS: dict[str, tuple[Spelling, ...]] = {
    "cuda_graph_max_bs": ((("cuda_graph_max_bs", None),), (("cuda_graph_max_bs_decode", None),)),
    "disable_piecewise_cuda_graph": ((("disable_piecewise_cuda_graph", None),), (PREFILL_OFF,)),
    "disable_cuda_graph": ((("disable_cuda_graph", None),), (DECODE_OFF, PREFILL_OFF)),
    "mamba_scheduler_strategy": ((("mamba_scheduler_strategy", None),), (("mamba_radix_cache_strategy", None),)),
}
ALIASES = {
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "expert_parallel_size": "ep_size",
    "ep": "ep_size",
}
DIALECT = Dialect(
    prefixes=("SGLANG_", "SGL_"),
    # k is 1000 and Ki is 1024
    suffixes={s: 1000 ** (i + 1) for i, s in enumerate("kMGT")}
    | {s: 1024 ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti"))},
    lora_must=frozenset({"lora_name", "lora_path"}),
)


class SGLang(base.Adapter):
    name = "sglang"
    package = "sglang"
    port = 30000
    no_copies = (
        "runs plain data parallelism on one node only; within the tensor group it can: parallel.tp = nodes, with "
        "launch.dp_size and enable_dp_attention: true"
    )
    generates = "/health_generate"
    schedulers: tuple[str, ...] = ("sglang::scheduler",)
    progress = (
        base.SHARDS,
        (r"Init torch distributed ends", "ranks have met"),
        (r"Load weight begin", "loading weights"),
        (r"Load weight end", "weights loaded"),
        (r"KV Cache is allocated", "KV cache allocated"),
        (r"Capture cuda graph begin", "capturing graphs"),
        (r"Capture cuda graph end", "graphs captured"),
    )
    works = (r"Prefill batch", r"Decode batch")
    metrics = "/metrics"
    patient_flags = ("watchdog_timeout", "dist_timeout")
    patient_env = ("SGLANG_WARMUP_TIMEOUT",)
    key_words = base.KEY_CONFIG
    dialect = DIALECT
    ranges = RANGES
    called: Mapping[str, str] = {
        "memory": "mem_fraction_static",
        "context": "context_length",
        "requests": "max_running_requests",
        "prefill": "chunked_prefill_size",
        "cache": "kv_cache_dtype",
        "model name": "served_model_name",
        "tools": "tool_call_parser",
    }
    reserved = frozenset(
        {"model_path", "nnodes", "node_rank", "dist_init_addr", "nccl_init_addr", "host", "port"}
        | {"tp_size", "pp_size", "ep_size", *ALIASES}
    )

    starts: tuple[tuple[str, ...], ...] = (
        ("python3", "-m", "sglang.launch_server"),
        ("python", "-m", "sglang.launch_server"),
        ("sglang", "serve"),
    )
    published = "lmsysorg/sglang:v{release}"
    placed: Mapping[str, str] = {
        "model_path": "model",
        "tp_size": "tp",
        "pp_size": "pp",
        "ep_size": "ep",
        "nnodes": "nodes",
    }
    sited: Mapping[str, str] = base.LISTENS | {
        "node_rank": base.RANKS,
        "dist_init_addr": base.RANKS,
        "nccl_init_addr": base.RANKS,
        "nccl_port": base.RANKS,
        "api_key": base.KEY,
    }

    def derived(self, loaded: LoadedSketch, topology: Topology) -> list[Setting]:
        parallel, model = topology.parallel, loaded.profile.model
        settings = [engine_setting("model_path", model.id, "read from the mounted model store, offline")]
        if model.revision:
            settings.append(engine_setting("revision", model.revision, "the revision whose files were verified"))
        settings += [
            topology_setting("tp_size", parallel.tp, "launch.parallel.tp"),
            topology_setting("pp_size", parallel.pp, "launch.parallel.pp"),
            topology_setting("ep_size", parallel.ep, "launch.parallel.ep"),
            *base.listening(self.port),
            base.counting("enable_metrics"),
        ]
        if topology.distributed:
            address = f"{topology.address(topology.head)}:{ports.RENDEZVOUS}"
            settings += [
                topology_setting("nnodes", len(topology.places), "one Spark, one rank"),
                topology_setting("dist_init_addr", address, "rank 0's address on the first rail"),
            ]
        return settings

    def rank_settings(self, topology: Topology, place: Place) -> tuple[Setting, ...]:
        return (topology_setting("node_rank", place.rank, "position in the inventory"),) if topology.distributed else ()

    def spell(self, settings: Sequence[Setting], release: str) -> tuple[Setting, ...]:
        catalog = Catalog.load(self.name, release, self.dialect)
        spelled = {new.name: new for setting in settings for new in _spelled(setting, catalog) if new.value is not None}
        return tuple(spelled.values())

    def canonical(self, settings: Iterable[Setting]) -> dict[str, FlagValue]:
        result: dict[str, FlagValue] = {}
        for setting in settings:
            name, value = _concept(setting)
            result[ALIASES.get(name, name)] = value
        return result

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        return ("python3", "-m", "sglang.launch_server", *base.words([*settings, *self.rank_settings(topology, place)]))

    def ports(
        self, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int
    ) -> list[ports.Port]:
        return [*super().ports(flags, env, release, nodes), *listeners.ports(self.port, flags, env, release, nodes)]

    def whole_prefill(self, flags: Mapping[str, FlagValue]) -> bool:
        size = flags.get("chunked_prefill_size")
        return isinstance(size, int) and size <= 0

    def environment(self, topology: Topology, place: Place, platform: Platform) -> list[EnvVar]:
        variables = [
            *base.offline_environment(),
            *base.cache_environment(("SGLANG_DG_CACHE_DIR", "deep_gemm")),
            *base.nccl_environment(topology, place),
        ]
        balance = "it refuses a node with 10 % less free memory than another, though the model fits; waited for instead"
        variables.append(EnvVar("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "0", Origin("platform", why=balance)))
        if topology.distributed:
            why = (
                "left alone ZeroMQ binds to the first address it finds (Wi-Fi, pod network): a freeze without a message"
            )
            variables.append(EnvVar("SGLANG_HOST_IP", topology.address(place), Origin("fabric", why=why)))
        return variables


def _concept(setting: Setting) -> tuple[str, FlagValue]:
    """The oldest name of what a flag says: `cuda_graph_backend_decode: disabled` is `disable_cuda_graph: true`."""
    for concept, spellings in SPELLINGS.items():
        for flag, fixed in (spelling[0] for spelling in spellings):
            if setting.name == flag and fixed is None:
                return concept, setting.value
            if setting.name == flag and setting.value == fixed:
                return concept, True
    return setting.name, setting.value


def _spelled(setting: Setting, catalog: Catalog) -> list[Setting]:
    concept, value = _concept(setting)
    for spelling in SPELLINGS.get(concept, ()):
        known = [catalog.flag(flag) for flag, _ in spelling]
        if all(flag is not None and not flag.deprecated for flag in known):
            return [
                replace(setting, name=flag, value=value if fixed is None else fixed if value is True else None)
                for flag, fixed in spelling
            ]
    return [setting]


ADAPTER = SGLang()
