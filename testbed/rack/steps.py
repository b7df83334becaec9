"""Steps: declared with name, key, action and check; skipped when done, timed, with an ETA, resumable."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from testbed.rack import names, store

TIMES = names.CACHE / "times.json"
QUIET_SECONDS = 30.0  # without a terminal: one sign of life this often

Say = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """`done` says whether there is nothing to do; `act` does it and may be run again at any time."""

    name: str
    title: str  # what it does and what it installs, in words
    done: Callable[[], bool]
    act: Callable[[Say], None]


def artefact(
    name: str, title: str, inputs: Callable[[], Iterable[store.Part]], build: Callable[[Path, Say], None]
) -> Step:
    """A step whose result is a folder in the cache, named by the hash of its inputs."""

    def done() -> bool:
        key = store.key_of(inputs())
        if not store.is_built(name, key):
            return False
        store.touch(name, key)
        return True

    def act(say: Say) -> None:
        with store.building(name, store.key_of(inputs())) as work:
            build(work, say)

    return Step(name, title, done, act)


class Progress:
    """One step's line: elapsed time, what it is at, and when it should end by the last run's time."""

    def __init__(self, head: str, expected: float | None) -> None:
        self.head, self.expected = head, expected
        self.start = time.monotonic()
        self.at = ""
        self.live = sys.stderr.isatty()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.live:
            sys.stderr.write("\r\033[K")

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def say(self, text: str) -> None:
        self.at = text
        if not self.live:
            print(f"      {duration(self.elapsed):>8}  {text}", file=sys.stderr, flush=True)

    def line(self) -> str:
        eta = "" if self.expected is None else f", about {duration(max(0.0, self.expected - self.elapsed))} left"
        return f"{self.head}  {duration(self.elapsed)}{eta}  {self.at}"

    def _tick(self) -> None:
        while not self._stop.wait(1.0 if self.live else QUIET_SECONDS):
            if self.live:
                sys.stderr.write(f"\r\033[K{self.line()[:150]}")
            else:
                print(f"      … {self.line()}", file=sys.stderr)
            sys.stderr.flush()


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s" if seconds >= 10 else f"{seconds:.1f} s"


def times() -> dict[str, dict[str, object]]:
    return store.read_json(TIMES)


def expected(name: str) -> float | None:
    value = times().get(name, {}).get("seconds")
    return float(value) if isinstance(value, (int, float)) else None


def record(name: str, seconds: float) -> None:
    known = times()
    known[name] = {"seconds": round(seconds, 1), "date": date.today().isoformat()}
    store.write_json(TIMES, known)


def perform(steps: Iterable[Step]) -> dict[str, float]:
    """Run what is not done yet, in order; returns the seconds of each step that ran."""
    todo = list(steps)
    spent: dict[str, float] = {}
    width = max(len(step.name) for step in todo)
    for number, step in enumerate(todo, 1):
        head = f"[{number}/{len(todo)}] {step.name:<{width}}"
        if step.done():
            print(f"{head}  already there", file=sys.stderr, flush=True)
            continue
        last = expected(step.name)
        known = f" (took {duration(last)} last time)" if last is not None else ""
        print(f"{head}  {step.title}{known}", file=sys.stderr, flush=True)
        with Progress(head, last) as progress:
            step.act(progress.say)
        spent[step.name] = progress.elapsed
        record(step.name, progress.elapsed)
        print(f"{head}  done in {duration(progress.elapsed)}", file=sys.stderr, flush=True)
    return spent
