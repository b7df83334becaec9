"""The engine as one process group: started, read line by line, ended without leaving anything behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from sparkloom.onnode.rank import procs, waits

LONGEST = 16_384  # bytes of one line; what is longer is broken
KEPT = 600  # lines, for naming the cause


def found(words: Sequence[str], programs: Iterable[Sequence[str]]) -> list[str]:
    """The same words with the program under the name that this image has; as they are when it has none."""
    others = next((names for names in programs if words[0] in names), ())
    there = next((name for name in (words[0], *others) if os.access(name, os.X_OK)), words[0])
    return [there, *words[1:]]


class Engine:
    """One start of the engine. `code` is its exit status once it has ended."""

    def __init__(self, words: Sequence[str], environment: dict[str, str], hear: Callable[[str], None]) -> None:
        self.hear, self.tail = hear, deque[str](maxlen=KEPT)
        self.code: int | None = None
        self.ended = asyncio.Event()
        self._rest = b""
        self._out, inner = os.pipe()
        os.set_blocking(self._out, False)
        try:
            self._process = subprocess.Popen(
                list(words),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=inner,
                stderr=inner,
                start_new_session=True,
            )
        except OSError:
            os.close(self._out)
            raise
        finally:
            os.close(inner)
        self.pid = self._process.pid
        asyncio.get_running_loop().add_reader(self._out, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._out, 65536)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._out)
            self._flush()
            return
        *lines, self._rest = (self._rest + data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > LONGEST:
            self._flush()

    def _flush(self) -> None:
        line, self._rest = self._rest, b""
        if line:
            self._line(line)

    def _line(self, raw: bytes) -> None:
        text = raw[:LONGEST].decode(errors="replace").rstrip()
        if text:
            self.tail.append(text)
            self.hear(text)

    def end(self, code: int) -> None:
        """Its main process was collected."""
        self.code = self._process.returncode = code
        self._read_rest()
        self.ended.set()

    def _read_rest(self) -> None:
        """What it wrote before it ended; others of its group may still hold the pipe."""
        for _ in range(64):
            before = len(self.tail), self._rest
            self._read()
            if (len(self.tail), self._rest) == before:
                return

    async def stop(self, seconds: float) -> None:
        """TERM to its main process, which may end the others in order; then KILL to all that is left."""
        if self.code is None:
            procs.send(self.pid, signal.SIGTERM)
            await waits.first(seconds, self.ended)
        procs.send(self.pid, signal.SIGKILL, group=True)
        await self._sweep(os.getpid())
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._out)
        self._flush()
        os.close(self._out)

    async def _sweep(self, mine: int) -> None:
        """Also what left the process group: whatever descends from us is the engine's."""
        for _ in range(100):
            left = procs.below(mine)
            if not left and self.code is not None:
                return
            for process in left:
                procs.send(process.pid, signal.SIGKILL)
            await asyncio.sleep(0.05)
