"""What a person sees of steps: a line for each that took a while, and below it how far the one at work is.

On a terminal that last line is drawn anew; elsewhere it comes now and then. Every word is kept in a log.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from sparkloom.base.amount import bar
from sparkloom.base.visible import visible
from testbed.base import names

QUIET_SECONDS = 60.0  # without a terminal: one sign of life this often
LONG = 10.0  # seconds: what takes as long has a bar, and a line that stays; the rest is in the log alone
INSTALLS = "installs with apt-get:"  # who says so changes the machine: a person sees it, before it happens
ANEW = "\r\x1b[2K"  # as sparkloom.cli.streams lets it through


def log_file() -> Path:
    """One for everything that a command starts, where it names one."""
    return Path(os.environ.get("SPARKLOOM_LOG") or names.CACHE / "logs" / f"steps-{names.CLUSTER}.log")


def terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s" if seconds >= 10 else f"{seconds:.1f} s"


def row(name: str, seconds: float | None, text: str) -> str:
    return f"  {name:<16} {'' if seconds is None else duration(seconds):>12}  {text}".rstrip()


class Progress:
    """One step at work: its time, what it is at, and when it should end by the last run's time."""

    def __init__(self, screen: Screen, name: str, expected: float | None) -> None:
        self._screen, self.name, self.expected = screen, name, expected
        self.start = time.monotonic()
        self.at = ""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def say(self, text: str) -> None:
        self.at = text
        show = self._screen.show if text.startswith(INSTALLS) else self._screen.keep
        show(f"  {self.name}: {text}")

    def line(self) -> str:
        return row(self.name, self.elapsed, f"{self._bar()}{self.at}")

    def _bar(self) -> str:
        if not self.expected or self.expected < LONG:
            return ""
        left = self.expected - self.elapsed
        remaining = f"{duration(left)} left" if left > 0 else f"usually {duration(self.expected)}"
        return f"{bar(self.elapsed / self.expected)} {remaining}; "


class Screen:
    """Used as a block around steps; several may be at work, of which the first that began is drawn last."""

    def __init__(self) -> None:
        self.live = terminal()
        self._log = log_file()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._at_work: list[Progress] = []
        self._lock, self._stop = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Screen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._erase()

    def begin(self, name: str, expected: float | None) -> Progress:
        progress = Progress(self, name, expected)
        with self._lock:
            self._at_work.append(progress)
        return progress

    def end(self, progress: Progress) -> None:
        with self._lock:
            self._at_work.remove(progress)

    def keep(self, text: str) -> None:
        with self._lock, self._log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')}  {visible(text)}\n")

    def show(self, text: str) -> None:
        """A line that stays; in a window no wider than that."""
        self.keep(text)
        with self._lock:
            self._erase()
            print(_cut(text) if self.live else text, file=sys.stderr, flush=True)

    def _erase(self) -> None:
        if self.live:
            sys.stderr.write(ANEW)
            sys.stderr.flush()

    def _tick(self) -> None:
        while not self._stop.wait(1.0 if self.live else QUIET_SECONDS):
            with self._lock:
                if not self._at_work:
                    continue
                text = self._at_work[-1].line()
                sys.stderr.write(f"{ANEW}{_cut(text)}" if self.live else f"{text}\n")
                sys.stderr.flush()


def _cut(text: str) -> str:
    """The last columns stay free: some terminals go on to the next line there, and all of them show a Ctrl-C (`^C`)."""
    text, room = visible(text), width() - 3
    return text if len(text) <= room else f"{text[: room - 3]}..."
