"""How fast at best, how fast probably: three figures from the bytes of a step.

bound:      n x tokens per step / (fewest bytes of a step / 273 GB/s). Nothing that computes the model beats it.
ceiling:    tokens per step / (expected bytes of the busiest rank / 273 GB/s). Alike prompts, which wake few experts,
            beat it.
prediction: tokens per step / (expected bytes / (0.83 x 273 GB/s) + all-reduces x their time).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparkloom.judge.capacity import traffic
from sparkloom.launch import engines
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.figure import Figure
from sparkloom.launch.memory.requirements import Requirements, Speculation
from sparkloom.launch.view import LaunchView

LEVELS = (1, 4, 8)


@dataclass(frozen=True)
class Speed:
    view: LaunchView

    @cached_property
    def needs(self) -> Requirements:
        return engines.requirements(self.view)

    @cached_property
    def bandwidth(self) -> float:
        return self.view.platform.bandwidth_gb_s * 1e9

    def bound(self, requests: int) -> float:
        """Tokens per second over all requests that nothing beats which computes the model.

        Requests that wait for each other overlap little, so the sum of their speeds is bounded by the speed of one."""
        speculation = self.needs.speculation
        bytes_ = traffic.fewest_bytes(self.view, self.needs)
        return requests * (speculation.most if speculation else 1) / (bytes_ / self.bandwidth)

    def ceiling(self, requests: int) -> float:
        """Tokens per second over all requests where each token chooses its experts on its own."""
        speculation = self.needs.speculation
        positions = speculation.drafts if speculation else 1
        batch, rounds = self._pipelined(requests)
        bytes_ = traffic.step_bytes(self.view, self.needs, batch, positions)
        if speculation:
            bytes_ += speculation.steps * self._draft(batch)
        return requests * (speculation.most if speculation else 1) / (rounds * bytes_ / self.bandwidth)

    def predicted(self, requests: int) -> float | None:
        """None where speculation drafts with a model of unknown size."""
        speculation = self.needs.speculation
        if speculation and not self.view.model.mtp:
            return None
        batch, rounds = self._pipelined(requests)
        seconds = self._step(batch, speculation.drafts if speculation else 1) * rounds
        if not speculation:
            return requests / seconds
        rate = self.bandwidth * float(constants.BANDWIDTH_SHARE.value or 1)
        draft = self._draft(batch) / rate + self._waiting(self._draft_collectives())
        return requests * self.accept_length(speculation)[0] / (seconds + speculation.steps * draft)

    def accept_length(self, speculation: Speculation) -> tuple[float, str]:
        """Tokens per verification step, and where that is known from."""
        mtp = self.view.model.mtp
        known = mtp.accept_length.get(speculation.key) if mtp else None
        if known:
            return min(known, float(speculation.most)), f"accept length measured at {speculation.key}: {known:g}"
        chance = float(constants.ACCEPTANCE.value or 0)
        length = (1 - chance**speculation.most) / (1 - chance)
        return length, f"accept length not measured; {chance:g} per further draft token: {constants.ACCEPTANCE.origin}"

    def _step(self, batch: float, positions: int) -> float:
        bytes_ = traffic.step_bytes(self.view, self.needs, batch, positions)
        rate = self.bandwidth * float(constants.BANDWIDTH_SHARE.value or 1)
        hops = 1 if self.view.parallel.pp > 1 else 0  # a stage hands its result to the next one
        return bytes_ / rate + self._waiting(traffic.collectives(self.view) / self.view.parallel.pp + hops)

    def _waiting(self, collectives: float) -> float:
        return collectives * self._each()

    def _each(self) -> float:
        """Of one exchange: all ranks of a tensor group, or two neighbours of a pipeline."""
        return constants.all_reduce_s(self._group, sockets=self.view.sockets)

    @property
    def _group(self) -> int:
        """Ranks that an exchange joins: a tensor group, or all that routed experts are dealt to."""
        parallel = self.view.parallel
        return parallel.expert_ranks if self.view.model.experts else parallel.tp

    def _draft(self, batch: float) -> float:
        return traffic.draft_bytes(self.view, batch) if self.view.model.mtp else 0.0

    def _draft_collectives(self) -> float:
        return 4.0 if self.view.parallel.tp > 1 else 0.0  # attention, feed-forward, embedding, logits

    def _pipelined(self, requests: int) -> tuple[float, int]:
        """Requests per stage and stage times per token: every token crosses all stages, which work on others'."""
        stages = self.view.parallel.pp
        return max(1.0, requests / stages), stages

    def formula(self) -> str:
        collectives = traffic.collectives(self.view)
        each = f"{1e6 * self._each():.0f} us{' (sockets)' if self.view.sockets else ''}"
        moved = f"bytes of the busiest rank per step / (0.83 x {self.bandwidth / 1e9:g} GB/s)"
        text = f"n / ({moved} + {collectives} x {each})"
        speculation = self.needs.speculation
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
            result[f"predicted.{n}"] = Figure(self.predicted(n), self.formula(), origin)
        return result
