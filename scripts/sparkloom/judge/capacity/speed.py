"""How fast at best, how fast probably: three figures from the bytes of a step.

bound:      n x tokens per step / (fewest bytes of a step / 273 GB/s). Nothing that computes the model beats it.
ceiling:    tokens per step / (expected bytes of the busiest rank / 273 GB/s). Alike prompts, which wake few experts,
            beat it.
prediction: tokens per step / (expected bytes / (share x 273 GB/s) + layers x their own time + all-reduces x theirs).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparkloom.judge.capacity import traffic
from sparkloom.launch import engines
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.constants import Figure, Requirements, Speculation
from sparkloom.launch.view import ModelView

LEVELS = (1, 4, 8)
AT_ONCE = ("dflash", "dspark")  # methods that draft a block of tokens in one step
SEEN = (1, 2, 4)  # Sparks, of which there are held-out runs


@dataclass(frozen=True)
class Speed:
    view: ModelView
    live: float | None = None  # tokens of context of each request, where they are known
    accepted: float | None = None  # tokens per verification step, where this very run told them

    @cached_property
    def needs(self) -> Requirements:
        return engines.requirements(self.view)

    @cached_property
    def bandwidth(self) -> float:
        return self.view.platform.bandwidth_gb_s * 1e9

    @cached_property
    def rate(self) -> float:
        return self.bandwidth * constants.BANDWIDTH_SHARE.number

    def bound(self, requests: float) -> float:
        """Tokens per second over all requests that nothing beats which computes the model.

        Requests that wait for each other overlap little, so the sum of their speeds is bounded by the speed of one."""
        speculation = self.needs.speculation
        bytes_ = traffic.fewest_bytes(self.view, self.needs)
        return requests * (speculation.most if speculation else 1) / (bytes_ / self.bandwidth)

    def ceiling(self, requests: float) -> float:
        """Tokens per second over all requests where each token chooses its experts on its own."""
        speculation = self.needs.speculation
        positions = speculation.drafts if speculation else 1
        batch, rounds = self._pipelined(requests)
        bytes_ = traffic.step_bytes(self.view, self.needs, batch, positions, self.live)
        if speculation:
            bytes_ += self._drafting_steps(speculation) * self._draft(batch)
        return requests * (speculation.most if speculation else 1) / (rounds * bytes_ / self.bandwidth)

    def predicted(self, requests: float, chance: float | None = None, apart: float = 1.0) -> float | None:
        """None where a model of unknown size drafts. `chance`: that one more draft token is accepted."""
        speculation = self.needs.speculation
        if speculation and not self._known_draft:
            return None
        batch, rounds = self._pipelined(requests)
        seconds = self._step(batch, speculation.drafts if speculation else 1, apart) * rounds
        if not speculation:
            return requests / seconds
        length = self.accept_length(speculation, chance)[0]
        return requests * length / (seconds + self._drafting_steps(speculation) * self._draft_step(batch))

    def interval(self, requests: float) -> tuple[float, float] | None:
        """From a bad day to a good one: what predictions were off by, and what nobody knows before a run."""
        least, most = constants.ACCEPTANCE_RANGE
        low, high = self.predicted(requests, least), self.predicted(requests, most, constants.APART_AT_BEST)
        if low is None or high is None:
            return None
        seen = self.view.nodes in SEEN and self.view.parallel.pp == 1
        spread = (constants.SPREAD if seen else constants.UNSEEN_SPREAD).number
        if self.view.parallel.pp > 1:
            low *= constants.PIPELINE_AT_WORST
        if self.needs.eager:
            low *= constants.EAGER_AT_WORST
        return low / spread, min(high * spread, self.bound(requests))

    def accept_length(self, speculation: Speculation, chance: float | None = None) -> tuple[float, str]:
        """Tokens per verification step, and where that is known from."""
        if self.accepted:
            return min(self.accepted, float(speculation.most)), f"accept length of this run: {self.accepted:g}"
        mtp = self.view.model.mtp
        known = mtp.accept_length.get(speculation.key) if mtp else None
        if known:
            return min(known, float(speculation.most)), f"accept length measured at {speculation.key}: {known:g}"
        usual = constants.ACCEPTANCE.number
        chance = usual if chance is None else chance
        length = (1 - chance**speculation.most) / (1 - chance)
        told = f"accept length not measured; {usual:g} per further draft token: {constants.ACCEPTANCE.origin}"
        return length, told

    def _step(self, batch: float, positions: int, apart: float = 1.0) -> float:
        """Seconds of one stage for `batch` requests, each with `positions` tokens to compute."""
        bytes_ = traffic.step_bytes(self.view, self.needs, batch, positions, self.live, apart)
        stages, message = self.view.parallel.pp, self._message(batch * positions)
        exchanges = traffic.collectives(self.view) / stages * self._all_reduce(message)
        handed_on = self._all_reduce(message, 2) if stages > 1 else 0.0  # a stage hands its result to the next one
        layers = traffic.layers(self.view.model) / stages * constants.LAYER_S.number
        return bytes_ / self.rate + layers + exchanges + handed_on

    def _draft_step(self, batch: float) -> float:
        """One step of the MTP layer: attention, feed-forward, embedding and logits, each with its exchange."""
        own = 2 * constants.LAYER_S.number
        return self._draft(batch) / self.rate + own + 4 * self._all_reduce(self._message(batch))

    def _message(self, positions: float) -> float:
        """Bytes that an all-reduce sums: one vector of bf16 per token."""
        return positions * self.view.model.hidden * 2

    def _all_reduce(self, message: float, ranks: int | None = None) -> float:
        """Of all ranks that exchange at a layer, or of two neighbours of a pipeline."""
        return constants.all_reduce_s(ranks or self._group, message, sockets=self.view.sockets)

    @property
    def _group(self) -> int:
        """Ranks that an exchange joins: a tensor group, or all that routed experts are dealt to."""
        parallel = self.view.parallel
        return parallel.expert_ranks if self.view.model.experts else parallel.tp

    @property
    def _known_draft(self) -> bool:
        """What drafts has a size: layers of the checkpoint, or a model of its own."""
        draft = self.view.model.draft
        return bool(self.view.model.mtp or (draft and draft.size_gb))

    def _drafting_steps(self, speculation: Speculation) -> int:
        """A draft model that makes all of its tokens at once takes one step for them."""
        method = self.view.mapping("speculative_config").get("method")
        told = str(method or self.view.flags.get("speculative_algorithm"))
        return 1 if told.lower().startswith(AT_ONCE) else speculation.steps

    def _draft(self, batch: float) -> float:
        return traffic.draft_bytes(self.view, batch) if self._known_draft else 0.0

    def _pipelined(self, requests: float) -> tuple[float, int]:
        """Requests per stage and stage times per token: every token crosses all stages, which work on others'."""
        stages = self.view.parallel.pp
        return max(1.0, requests / stages), stages

    def formula(self, requests: float = 1) -> str:
        speculation, batch = self.needs.speculation, self._pipelined(requests)[0]
        positions = batch * (speculation.drafts if speculation else 1)
        each = 1e6 * self._all_reduce(self._message(positions))
        share, own = constants.BANDWIDTH_SHARE.value or 0, 1e6 * (constants.LAYER_S.value or 0)
        text = f"n / (bytes of the busiest rank per step / ({share:g} x {self.bandwidth / 1e9:g} GB/s)"
        text += f" + {traffic.layers(self.view.model)} layers x {own:.0f} us"
        if collectives := traffic.collectives(self.view):
            sockets = ", sockets" if self.view.sockets else ""
            text += f" + {collectives} all-reduces x {each:.0f} us ({self.view.parallel.tp} Sparks{sockets})"
        text += ")"
        if speculation:
            length, known_from = self.accept_length(speculation)
            text += f", at n x {speculation.drafts} positions plus {speculation.steps} draft steps, "
            text += f"x {length:.2f} tokens per step ({known_from})"
        return text

    def figures(self) -> dict[str, Figure]:
        origin = constants.BANDWIDTH_SHARE.origin
        result: dict[str, Figure] = {}
        fewest = traffic.fewest_bytes(self.view, self.needs) / 1e9
        for n in LEVELS:
            gb = traffic.step_bytes(self.view, self.needs, self._pipelined(n)[0]) / 1e9
            result[f"bound.{n}"] = Figure(
                self.bound(n), f"n x tokens per step / (fewest bytes / 273 GB/s); {fewest:.1f} GB per token and rank"
            )
            result[f"ceiling.{n}"] = Figure(
                self.ceiling(n), f"tokens per step / (bytes / 273 GB/s); {gb:.1f} GB per step and rank without drafting"
            )
            result[f"predicted.{n}"] = Figure(self.predicted(n), self.formula(n), origin)
        return result
