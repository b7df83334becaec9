"""SGLang: one server process group, one process per rank, rendezvous at the head's first rail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from packaging.version import Version

from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.flagtypes import Dialect
from sparkloom.inputs.profile import FlagValue, LoadedSketch, Model
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.ports import RENDEZVOUS, Port
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
# By who packed the weights: what the engine calls it. The others it finds out itself.
QUANTIZATION = {"modelopt": {"nvfp4": "modelopt_fp4", "fp8": "modelopt_fp8", "mixed": "modelopt_mixed"}}
# Ports beside the API's.
ALONE = 233  # DP attention on one node: this far behind the API's port (ZMQ_TCP_PORT_DELTA)
HANDSHAKE = 13  # where node 0 tells the others the workers' ports, behind the rendezvous or the API
LOADS_SINCE = Version("0.5.14")  # one more port, for the ranks' loads
RUST_SINCE = Version("0.5.17")  # SGLANG_RUST_SERVER: one more for each rank of data parallelism
GRPC = 10000  # behind the API's port unless SGLANG_GRPC_PORT says another
DIALECT = Dialect(
    prefixes=("SGLANG_", "SGL_"),
    # k is 1000 and Ki is 1024
    suffixes={s: 1000 ** (i + 1) for i, s in enumerate("kMGT")}
    | {s: 1024 ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti"))},
    lora_must=frozenset({"lora_name", "lora_path"}),
)


class SGLang(base.Adapter):
    name = "sglang"
    key_words = base.KEY_CONFIG
    dialect = DIALECT

    def first_flags(self, model: Model) -> dict[str, FlagValue]:
        """The fraction is one that leaves the host a fifth; placement and context are found by arithmetic."""
        said: dict[str, FlagValue] = {}
        words = QUANTIZATION.get(model.checkpoint.packing)
        if words:
            main = model.precision.experts or model.precision.dense or model.precision.attention
            mixed = model.checkpoint.mixed or main not in words
            said["quantization"] = words["mixed"] if mixed else words[main]
        return {**said, "context_length": model.context, "mem_fraction_static": 0.8}

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
            address = f"{topology.address(topology.head)}:{RENDEZVOUS}"
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
        return {self.synonyms.get(name, name): value for name, value in map(_concept, settings)}

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        return ("python3", "-m", "sglang.launch_server", *base.words([*settings, *self.rank_settings(topology, place)]))

    def ports(self, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int) -> list[Port]:
        """Read in `PortArgs` and its callers, releases 0.5.9 to 0.5.23."""
        api, found = self.port, super().ports(flags, env, release, nodes)
        if nodes > 1:
            found.append(Port(RENDEZVOUS, "rendezvous of the ranks"))
        if flags.get("enable_dp_attention") is True:
            found += _data_parallel(api, flags, env, release, nodes)
        found += _asked(flags, "nccl_port", "torch.distributed")
        if flags.get("disaggregation_mode") in ("prefill", "decode"):
            found += _asked(flags, "disaggregation_bootstrap_port", "disaggregation", 8998)
        if flags.get("remote_instance_weight_loader_start_seed_via_transfer_engine") is True:
            found += _asked(flags, "engine_info_bootstrap_port", "weights for other instances", 6789)
        if flags.get("grpc_mode") is True or "SGLANG_GRPC_PORT" in env:
            grpc = env.get("SGLANG_GRPC_PORT", "")[:6]
            number = int(grpc) if grpc.isdecimal() else api + GRPC
            found.append(Port(number, "gRPC", "env.SGLANG_GRPC_PORT" if grpc else ""))
        return found

    def whole_prefill(self, flags: Mapping[str, FlagValue]) -> bool:
        size = flags.get("chunked_prefill_size")
        return isinstance(size, int) and size <= 0

    def environment(self, topology: Topology, place: Place) -> list[EnvVar]:
        variables = super().environment(topology, place)
        balance = "it refuses a node with 10 % less free memory than another, though the model fits; waited for instead"
        variables.append(EnvVar("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "0", Origin("platform", why=balance)))
        if topology.distributed:
            why = (
                "left alone ZeroMQ binds to the first address it finds (Wi-Fi, pod network): a freeze without a message"
            )
            variables.append(EnvVar("SGLANG_HOST_IP", topology.address(place), Origin("fabric", why=why)))
        return variables


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
