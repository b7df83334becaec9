"""TensorRT-LLM: `trtllm-serve` on one Spark; what has no flag travels in its extra options file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import yaml

from sparkloom.inputs.profile import LoadedSketch
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.values import Place, Setting, Topology

OPTIONS = "extra_llm_api_options"
OPTIONS_FILE = "/etc/sparkloom/engine/extra-llm-api-config.yml"

COUNTED = {"enable_iter_perf_stats": True}  # its steps tell a busy engine from a dead one; a profile may say otherwise


class TensorRTLLM(base.Adapter):
    name = "trtllm"

    def derived(self, loaded: LoadedSketch, topology: Topology) -> list[Setting]:
        parallel = topology.parallel
        return [
            engine_setting("model", loaded.profile.model.id, "positional; read from the mounted model store, offline"),
            *base.listening(self.port, "named so that nothing guesses"),
            topology_setting("tp_size", parallel.tp, "launch.parallel.tp"),
            topology_setting("ep_size", parallel.ep, "launch.parallel.ep"),
            engine_setting(OPTIONS, COUNTED, "its steps tell a busy engine from a dead one"),
        ]

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        model = next(str(setting.value) for setting in settings if setting.name == "model")
        rest = [replace(s, value=OPTIONS_FILE) if s.name == OPTIONS else s for s in settings if s.name != "model"]
        return ("trtllm-serve", model, *base.words(rest, dash="_"))

    def files(self, settings: Sequence[Setting], loaded: LoadedSketch) -> dict[str, str]:
        options = next((s.value for s in settings if s.name == OPTIONS), None)
        if not isinstance(options, dict):
            return {}
        return {OPTIONS_FILE: yaml.safe_dump({**COUNTED, **options}, sort_keys=True)}


ADAPTER = TensorRTLLM()
