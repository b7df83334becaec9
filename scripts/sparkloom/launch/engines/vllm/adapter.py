"""vLLM: `vllm serve`, one process per rank; ranks beyond the first are headless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkloom.inputs.profile import FlagValue, LoadedSketch, Model
from sparkloom.launch import ports
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.engines.vllm.dialect import DIALECT
from sparkloom.launch.values import EnvVar, Origin, Place, Setting, Topology

RPC, MASTER, MASTERS = 29550, 29500, 10  # vllm/config/parallel.py and utils/network_utils.py, 0.17.1 to 0.33.0
BACKEND = "the one that --nnodes works with; Ray has its own"
RAY_TRANSLATED = "Ray placed the ranks; here one pod a Spark does, and they meet by --nnodes with the mp backend"


class VLLM(base.Adapter):
    name = "vllm"
    key_words = base.KEY_CONFIG
    dialect = DIALECT

    def first_flags(self, model: Model) -> dict[str, FlagValue]:
        """It takes its share of the whole machine, and finds out by itself who packed the weights."""
        return {"max_model_len": model.context, "gpu_memory_utilization": 0.85, "max_num_seqs": 16}

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
                topology_setting("distributed_executor_backend", "mp", BACKEND),
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
            if len(env.get(name, "")) < 6 and env.get(name, "").isdecimal():
                found.append(ports.Port(int(env[name]), f"{name} and what follows it", f"env.{name}", MASTERS))
        return found

    def other_command(self, words: Sequence[str]) -> str:
        """A `ray ...` line; what only Ray can do is named."""
        if any(word.endswith("run_cluster.sh") for word in words[:3]):
            return f"starts Ray's cluster in containers: image and variables are read. {RAY_TRANSLATED}"
        if not words or words[0].rsplit("/", 1)[-1] != "ray":
            return ""
        asked = next((word for word in words[1:] if word.split("=")[0] in ("--resources", "--labels")), None)
        if words[1:2] == ["start"] and asked:
            return f"{asked} places actors by resources of its own, which nothing here reads"
        if words[1:2] == ["start"]:
            return f"starts Ray's cluster: {RAY_TRANSLATED}"
        if words[1:2] in (["stop"], ["status"]):
            return "nothing to stop or to ask: no Ray runs here"
        return "a Ray command that has no counterpart here"

    def whole_prefill(self, flags: Mapping[str, FlagValue]) -> bool:
        return flags.get("enable_chunked_prefill") is False

    def environment(self, topology: Topology, place: Place) -> list[EnvVar]:
        variables = super().environment(topology, place)
        if topology.distributed:
            why = "the address that the other ranks reach; left alone vLLM takes the pod network's"
            variables.append(EnvVar("VLLM_HOST_IP", topology.address(place), Origin("fabric", why=why)))
        return variables


ADAPTER = VLLM()
