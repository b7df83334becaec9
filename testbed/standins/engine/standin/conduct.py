"""How this rank behaves: what a measured row or a tester makes it do, asked at each stage and for each request."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time

from standin import trouble
from standin.config import Config
from standin.precedents import Precedent
from standin.symptoms import ILLEGAL, KILLED
from standin.trouble import Trouble

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
LENDER_GONE = "Remote RPC server crashed or returned malformed response"
LATE = 0.5  # a fault of a kernel is seen at the next synchronisation, not at once
POLL = 0.5


class Died(Exception):
    """The rank ends with these last words."""


class Declined(Died):
    """Its first process ends so, before there is another."""


class Conduct:
    def __init__(self, config: Config, precedent: Precedent) -> None:
        self.config = config
        self.command = " ".join(sys.argv)
        self.own = [precedent.trouble] if precedent.trouble else []
        self.fatal: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.bereft = asyncio.Event()  # llama.cpp: a rank that lent its memory is gone
        self.begun = 0  # requests since the start, on every rank: rank 0 tells the others

    def troubles(self) -> list[Trouble]:
        return self.own + trouble.faults(self.command)

    def find(self, *kinds: str, running: int = 1) -> Trouble | None:
        return next((fault for fault in self.troubles() if fault.kind in kinds and running >= fault.least), None)

    async def reach(self, stage: str) -> None:
        """Passes a stage of the start, or does not; a crash while it serves is `note`'s and `watch`'s."""
        for fault in self.troubles():
            if fault.kind == "crash" and fault.stage == stage != "serve" and self._mine(fault):
                raise (Declined if stage == "args" else Died)(fault.text or default_words(stage))
            if fault.kind == "hang" and fault.stage == stage:
                await asyncio.Event().wait()

    def note(self, begun: int, running: int) -> None:
        """So many requests were begun and so many run now: is this where it breaks?"""
        self.begun = begun
        if self.bereft.is_set():  # /health stays 200 until somebody asks for something
            self._die(LENDER_GONE)
        for fault in self.troubles():
            deadly = fault.kind == "illegal-instruction" or (fault.kind == "crash" and fault.stage == "serve")
            if deadly and begun > fault.after and running >= fault.least and self._mine(fault):
                text = fault.text or (ILLEGAL if fault.kind == "illegal-instruction" else default_words("serve"))
                asyncio.get_running_loop().call_later(LATE, self._die, text)

    async def watch(self) -> None:
        """A fault that needs no request strikes a quiet server too."""
        while True:
            await asyncio.sleep(POLL)
            for fault in self.troubles():
                if fault.source == "asked for" and fault.kind == "crash" and fault.stage == "serve" and not fault.after:
                    self._die(fault.text or default_words("serve"))

    def _die(self, text: str) -> None:
        if not self.fatal.done():
            self.fatal.set_result(text)

    def _mine(self, fault: Trouble) -> bool:
        """Of a fault that hits one rank, all ranks know which: no rank is special, but a run can be repeated."""
        victim = random.Random(f"{self.config.group_hash}{fault.source}").randrange(self.config.nnodes)
        return not fault.anywhere or victim == self.config.rank


def default_words(stage: str) -> str:
    return {
        "args": "ValueError: stand-in: asked to refuse its arguments",
        "load": OUT_OF_MEMORY,
        "kv": "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "graph": "RuntimeError: Capture cuda graph failed: CUDA error: an illegal instruction was encountered",
    }.get(stage, ILLEGAL)


def end(config: Config, error: Exception, *, served: bool) -> int:
    """The exit status that goes with last words, where there is one left to tell it."""
    words = str(error)
    if words == KILLED:
        _killed()
    if config.engine == "sglang" and not isinstance(error, Declined):
        # its server hears of the failed scheduler by SIGQUIT, in one of two handlers, and kills its tree and itself
        handler = "SIGQUIT received. signum=<Signals.SIGQUIT: 3>, frame=None. It usually means one child failed."
        loading = "Received sigquit from a child process. It usually means the child failed."
        print(f"[{time.strftime('%F %T')}] {handler if served else loading}", file=sys.stderr, flush=True)
        _killed()
    return 1


def _killed() -> None:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)  # the first process of a container is not killed by itself
