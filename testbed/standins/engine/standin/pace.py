"""How fast tokens come: as measured for this configuration, else by a simple estimate."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from standin.config import Config
from standin.facts import Facts
from standin.precedents import Precedent

BANDWIDTH = 0.83 * 273e9  # what of a GB10's memory bandwidth a decode step reaches
RANK_STEP = 0.02  # all-reduces of one step over two rails
ACCEPTED = 0.75  # chance that a drafted token is taken, given that the one before was
DEFAULT = {1: 20.0, 4: 14.0, 8: 10.0}


@dataclass
class Pace:
    measured: dict[int, float]  # concurrent requests -> tokens a second of each
    accept: float = 1.0  # tokens a step
    first: float = 0.1

    @staticmethod
    def of(config: Config, facts: Facts, precedent: Precedent) -> Pace:
        steps = config.speculation.steps if config.speculation else 0
        accept = sum(ACCEPTED**place for place in range((steps or 0) + 1))
        return Pace(precedent.pace or _estimate(config, facts), accept)

    def rate(self, running: int) -> float:
        """Tokens a second of each of `running` requests; between measurements on a line over the logarithm."""
        running = max(1, running)
        known = sorted(self.measured)
        if running >= known[-1]:
            return self.measured[known[-1]] * math.sqrt(known[-1] / running)
        if running <= known[0]:
            return self.measured[known[0]]
        low = max(n for n in known if n <= running)
        high = min(n for n in known if n > running)
        share = math.log(running / low) / math.log(high / low)
        return self.measured[low] + share * (self.measured[high] - self.measured[low])

    def burst(self, source: random.Random) -> int:
        """Tokens of one step: more than one only with speculation."""
        whole = int(self.accept)
        return whole + (source.random() < self.accept - whole)

    def prefill(self, prompt_tokens: int) -> float:
        return self.first + prompt_tokens / 4000


def _estimate(config: Config, facts: Facts) -> dict[int, float]:
    if not facts.bytes_total or not facts.active_share:
        return dict(DEFAULT)
    once = facts.bytes_total * facts.active_share / (config.tp * config.pp) / BANDWIDTH
    return {n: 1 / (once * n**0.4 + (RANK_STEP if config.nnodes > 1 else 0.005)) for n in (1, 4, 8, 16)}
