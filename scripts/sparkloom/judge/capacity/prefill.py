"""How long until the first token: a prompt's way through the model, chunk by chunk.

A chunk reads the weights once (all experts that its tokens wake), computes every token, looks back at all tokens before
it, and sums its vectors between the Sparks behind every layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparkloom.inputs.precision import weight
from sparkloom.inputs.profile import Model, Precision
from sparkloom.judge.capacity import traffic
from sparkloom.launch import engines
from sparkloom.launch.memory import constants, weights
from sparkloom.launch.memory.attention import indexers
from sparkloom.launch.view import ModelView

# Tensor cores take FP8 at twice the rate of BF16; of FP4's fourfold, kernels of a GB10 reach this much. What begins
# with none of these words is unpacked to 16 bits first.
NATIVE = {"fp8": 2.0, "mxfp8": 2.0, "nvfp4": 2.6, "mxfp4": 2.6}
PLAIN = ("bf16", "fp16", "fp32")
_MARLIN_FLAGS = ("moe_backend", "linear_backend", "moe_runner_backend", "quantization")
_MARLIN_ENV = {"VLLM_TEST_FORCE_FP8_MARLIN": "1", "VLLM_NVFP4_GEMM_BACKEND": "marlin", "VLLM_MXFP4_BACKEND": "marlin"}


@dataclass(frozen=True)
class Prefill:
    view: ModelView

    @cached_property
    def chunk(self) -> int:
        return engines.requirements(self.view).chunk

    def seconds(self, tokens: int, before: int = 0) -> float:
        """Of one prompt alone: `tokens` to compute, `before` them those that the prefix cache already has."""
        whole, rest = divmod(max(0, tokens), self.chunk)
        sizes = [self.chunk] * whole + ([rest] if rest else [])
        total, seen = 0.0, before
        for size in sizes:
            total += self._chunk(size, seen)
            seen += size
        return total

    def interval(self, tokens: int, before: int = 0) -> tuple[float, float]:
        seconds, spread = self.seconds(tokens, before), constants.PREFILL_SPREAD.number
        return seconds / spread, seconds * spread

    def _chunk(self, size: int, seen: int) -> float:
        view, parallel = self.view, self.view.parallel
        rate = view.platform.bandwidth_gb_s * 1e9 * constants.BANDWIDTH_SHARE.number
        read = traffic.prefill_bytes(view, size) / rate
        computed = size * self._work + self._looking_back(size, seen) / constants.ATTENTION_FLOPS.number
        own = traffic.layers(view.model) / parallel.pp * constants.LAYER_S.number
        message = size * view.model.hidden * 2
        summed = traffic.collectives(view) * constants.all_reduce_s(parallel.tp, message, sockets=view.sockets)
        return (read + computed + own) * parallel.pp + summed

    @cached_property
    def _work(self) -> float:
        """Seconds of one token's matrices on the rank that has most of them."""
        model, full = weights.held(self.view), constants.BF16_FLOPS.number
        total = 0.0
        for group in weights.tensors(model, self.view.parallel):
            precision = _precision(model, group.name)
            if group.read == "never" or group.name == "head":
                continue  # a row of the embedding; the head sees the last token only
            params = group.bytes / weight(precision)
            if group.read == "touched" and model.experts:
                params *= model.experts.active / model.experts.routed
            total += 2 * params / (full * self._factor(precision))
        return total

    def _factor(self, precision: Precision) -> float:
        """How fast matrices of this precision are computed, BF16 = 1."""
        if precision in PLAIN:
            return 1.0
        native = next((rate for word, rate in NATIVE.items() if precision.startswith(word)), None)
        return constants.UNPACKED.number if native is None or self._marlin else native

    @cached_property
    def _marlin(self) -> bool:
        """Kernels that unpack what tensor cores could take as it is."""
        named = any("marlin" in str(self.view.flags.get(flag) or "") for flag in _MARLIN_FLAGS)
        return named or any(self.view.env.get(name) == value for name, value in _MARLIN_ENV.items())

    def _looking_back(self, size: int, seen: int) -> float:
        """Operations of attention: each token with all before it, with its window, with what an indexer chooses."""
        model = self.view.model
        facts, layers, mean = model.attention, model.layers, seen + size / 2
        near = min(mean, facts.window) if facts.window else mean
        entries = layers.attention * facts.head_dim * mean
        entries += layers.sliding * (facts.sliding_head_dim or facts.head_dim) * near
        chooser = facts.indexer
        if layers.sparse and chooser:
            entries += layers.sparse * facts.head_dim * min(mean, chooser.top_k)
        for ratio, count in layers.compressed.items():
            kept = mean / int(ratio)
            chosen = min(kept, chooser.top_k) if chooser and str(chooser.ratio) == ratio else kept
            entries += count * facts.head_dim * (chosen + near)
        total = 4 * facts.q_heads * entries
        if chooser:
            total += 2 * indexers(model) * chooser.heads * chooser.head_dim * mean / (chooser.ratio or 1)
        return total * size / self.view.tp / self.view.pp


def _precision(model: Model, group: str) -> Precision:
    stored = model.precision
    common: dict[str, Precision | None] = {
        "mamba": stored.mamba,
        "linear attention": stored.linear,
        "dense": stored.dense or stored.experts,
        "experts": stored.experts or "bf16",
        "shared expert": stored.shared or stored.experts or "bf16",
        "router": "bf16",
        "latent projections": "bf16",
    }
    if group.endswith("compressor"):
        return "bf16"
    return common.get(group) or stored.attention
