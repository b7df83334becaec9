"""The two pages for a Prometheus, each made in a thread, once for all who ask meanwhile: an engine may be slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sparkloom.onnode.rank import exposition, passed_on, waits
from sparkloom.onnode.rank.status_log import StatusLog

PATIENCE = 8.0  # less than a scrape waits
PAGES: dict[str, Callable[[StatusLog], str | None]] = {
    exposition.PATH: lambda log: exposition.page(log.order, log.rank, dict(log.status), time.time()),
    passed_on.PATH: lambda log: passed_on.page(log.order, log.rank),
}


class Scraped:
    def __init__(self, log: StatusLog) -> None:
        self.log = log
        self._made: dict[str, asyncio.Future[str | None]] = {}

    async def page(self, path: str) -> str | None:
        """None when it does not come in time; one that is late is waited for by the next who asks."""
        made = self._made.get(path)
        if made is None or made.done():
            made = self._made[path] = asyncio.ensure_future(asyncio.to_thread(PAGES[path], self.log))
        try:
            return await asyncio.wait_for(asyncio.shield(made), PATIENCE)
        except waits.Late:
            return None
