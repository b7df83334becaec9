"""An engine whose other ranks only lend their memory, as rpc-server does: rank 0 looks for them once, at its start.

llama-server that comes before an rpc-server ends within a second. So rank 0 waits until each of them listens, over the
same rail that the engine will take.
"""

from __future__ import annotations

import asyncio
import time

from sparkloom.onnode.rank import answers, waits
from sparkloom.onnode.rank.group import RankGroup
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog

EVERY = 1.0


async def missing(plan: GroupPlan, group: RankGroup, log: StatusLog, *leaving: asyncio.Event) -> str:
    """Why rank 0's engine cannot start; empty once all listen, or when the group stops anyhow."""
    if log.rank or not plan.lends:
        return ""
    begun = time.monotonic()
    for member in plan.members[1:]:
        where = f"{member.address}:{plan.lends}"
        while not await asyncio.to_thread(answers.listens, member.address, plan.lends):
            if group.stop.is_set() or any(event.is_set() for event in leaving):
                return ""
            if time.monotonic() - begun > plan.limits.lend:
                return f"{member} did not listen at {where} in {plan.limits.lend:.0f} s; its own log says why"
            log.progress("lenders", f"{member} does not listen yet at {where}")
            await waits.first(EVERY, group.stop, *leaving)
    return ""
