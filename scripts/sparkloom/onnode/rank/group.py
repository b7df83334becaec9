"""What every rank knows of its group: is it together, may it start, must it stop, does it serve, is it given up."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from sparkloom.onnode.rank.budget import RestartBudget
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog


@dataclass(frozen=True)
class Identity:
    """What two ranks of one group have in common, and who speaks."""

    rank: int
    config: str  # hash over everything that was applied
    build: str  # of the software in the image: a tag may mean another one on each node
    # of this supervisor: another after every start
    instance: str = field(default_factory=lambda: os.urandom(4).hex())


class RankGroup:
    """`start` and `stop` are the head's decisions; exactly one of them is set once the first start was decided."""

    def __init__(self, plan: GroupPlan, me: Identity, log: StatusLog) -> None:
        self.plan, self.me, self.log = plan, me, log
        self.start, self.stop, self.changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.epoch = 0
        self.round = 0  # raised with every stop: what was offered before it does not count
        self.offered = -1
        self.present = len(plan.members) == 1
        self.waiting = ""  # who is missing, or why this rank was refused
        self.why = ""  # of the last stop
        self.down = ""  # why nothing is started any more
        self.answers = False  # tokens come from rank 0, in this epoch
        self.serves = False  # and every rank agreed to the way they went
        self.worked = 0.0  # when another rank last showed that its engine works although nothing comes out
        self.budget = RestartBudget(plan.limits.restarts, plan.limits.window)

    async def join(self) -> None:
        """Be reachable for the others, or look for them; returns at once."""

    def offer(self) -> None:
        """This rank's rails and weights are right: it could start."""

    def lost(self, cause: str, *, own: bool) -> None:
        """This rank's engine failed; not `own` when it only followed another one."""

    def served(self, yes: bool) -> None:
        """Rank 0 alone knows whether tokens come, and answers requests."""

    def agree(self) -> None:
        """Tokens came, and this rank's part of the way is the planned one."""

    def proved(self) -> None:
        """Tokens came and nobody objected, as rank 0 says: what failed before is forgiven."""

    def works(self, how: str) -> None:
        """This rank's engine compiles: rank 0, which sees its own, waits for it without seeing why."""

    def leave(self) -> None:
        """This rank is told to go: let the group drain, then stop."""

    def _begin(self, epoch: int) -> None:
        self.epoch, self.answers, self.serves = epoch, False, False
        self.stop.clear()
        self.start.set()
        self._wake()

    def _halt(self, why: str) -> None:
        self.why, self.answers, self.serves = why, False, False
        self.start.clear()
        self.stop.set()
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
