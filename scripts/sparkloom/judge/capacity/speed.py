"""How fast at best, how fast probably, and which measured figure cannot be.

bound:      tokens per step / (bytes of the busiest rank / 273 GB/s). Nothing that computes the model beats it.
prediction: tokens per step / (bytes / (0.83 x 273 GB/s) + all-reduces x 165 us).
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


def impossible(measured: float, bound: float | None) -> bool:
    """A throughput beyond the memory bound: the model was not computed (garbage, or counted wrongly)."""
    return bound is not None and measured > bound


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
        """Tokens per second over all requests that memory bandwidth alone allows."""
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
        each = constants.ALL_REDUCE_SOCKET_S if self.view.sockets else constants.ALL_REDUCE_S
        return collectives * float(each.value or 0)

    def _draft(self, batch: float) -> float:
        return traffic.draft_bytes(self.view, batch) if self.view.model.mtp else 0.0

    def _draft_collectives(self) -> float:
        return 4.0 if self.view.parallel.tp > 1 else 0.0  # attention, feed-forward, embedding, logits

    def _pipelined(self, requests: int) -> tuple[float, int]:
        """Requests per stage and stage times per token: every token crosses all stages, which work on others'."""
        stages = self.view.parallel.pp
        return max(1.0, requests / stages), stages

    def formula(self) -> str:
        collectives, socket = traffic.collectives(self.view), self.view.sockets
        each = "560 us (sockets)" if socket else "165 us"
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
        for n in LEVELS:
            gb = traffic.step_bytes(self.view, self.needs, self._pipelined(n)[0]) / 1e9
            result[f"bound.{n}"] = Figure(
                self.bound(n), f"tokens per step / (bytes / 273 GB/s); {gb:.1f} GB per step and rank without drafting"
            )
            result[f"predicted.{n}"] = Figure(self.predicted(n), self.formula(), origin)
        return result
