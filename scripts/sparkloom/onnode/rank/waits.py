"""Waiting for whichever comes first, without leaving anything behind that still waits."""

from __future__ import annotations

import asyncio

Late = asyncio.TimeoutError  # what wait_for raises: no TimeoutError before Python 3.11, and no OSError


async def first(seconds: float, *events: asyncio.Event) -> bool:
    """True when one of the events was set, False when the time was over."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return bool(done)
