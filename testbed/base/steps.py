"""Steps: declared with name, check and action; skipped when done, timed, with an ETA, resumable.

One after the other, but for those that go on `aside`: what mostly waits for a mirror leaves a processor to a compiler.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testbed.base import locks, store, times

QUIET_SECONDS = 30.0  # without a terminal: one sign of life this often

Say = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """`done` says whether there is nothing to do (or why, in words); `act` may be run again at any time."""

    name: str
    title: str  # what it does and what it installs, in words
    done: Callable[[], bool | str]
    act: Callable[[Say], None]
    # whether an earlier run left something that makes this one short: its time is kept apart
    warm: Callable[[], bool] = lambda: False
    aside: bool = False  # the next ones begin while it goes on
    after: tuple[str, ...] = ()  # what went on aside and has to be there for this one


def artefact(
    name: str,
    title: str,
    inputs: Callable[[], Iterable[store.Part]],
    build: Callable[[Path, Say], None],
    warm: Callable[[], bool] = lambda: False,
) -> Step:
    """A step whose result is a folder in the cache, named by the hash of its inputs."""

    def done() -> bool:
        key = store.key_of(inputs())
        if not store.is_built(name, key):
            return False
        store.touch(name, key)
        return True

    def act(say: Say) -> None:
        with locks.making(name):
            if done():  # by whoever had the lock
                return
            with store.building(name, store.key_of(inputs())) as work:
                build(work, say)

    return Step(name, title, done, act, warm)


def quietly(steps: Iterable[Step]) -> None:
    """What is not done yet, in order and without a word: for a test that wants one artefact."""
    for step in steps:
        if not step.done():
            step.act(lambda text: None)


class Progress:
    """One step's line: elapsed time, what it is at, and when it should end by the last run's time."""

    def __init__(self, head: str, expected: float | None, alone: bool = True) -> None:
        self.head, self.expected = head, expected
        self.start = time.monotonic()
        self.at = ""
        self.live = sys.stderr.isatty() and alone  # two cannot draw one line
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
        return f"{self.head}  {duration(self.elapsed)}{self._eta()}  {self.at}"

    def _eta(self) -> str:
        if self.expected is None:
            return ""
        left = self.expected - self.elapsed
        return f", about {duration(left)} left" if left > 0 else f", longer than the usual {duration(self.expected)}"

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


class _Aside(threading.Thread):
    """A step that goes on beside the others; what it started ends with this process (`shell.APART`, `_leash`)."""

    def __init__(self, step: Step, work: Callable[[], float]) -> None:
        super().__init__(daemon=True, name=f"step {step.name}")
        self.step, self._work = step, work
        self.spent = 0.0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.spent = self._work()
        except BaseException as error:
            self.error = error

    def ended(self) -> float:
        """Its seconds, once it is over; what went wrong with it goes wrong here."""
        while self.is_alive():
            self.join(1.0)  # a wait without an end would not hear Ctrl-C
        if self.error:
            raise self.error
        return self.spent


def _perform(step: Step, head: str) -> float:
    warm = step.warm()
    usual = times.expected(step.name, warm)
    known = f" (took {duration(usual.seconds)} {usual.where})" if usual else ""
    print(f"{head}  {step.title}{known}", file=sys.stderr, flush=True)
    with Progress(head, usual.seconds if usual else None, alone=not step.aside) as progress:
        step.act(progress.say)
    times.record(step.name, progress.elapsed, warm)
    print(f"{head}  done in {duration(progress.elapsed)}", file=sys.stderr, flush=True)
    return progress.elapsed


def perform(steps: Iterable[Step], passed: Callable[[Step], None] = lambda step: None) -> dict[str, float]:
    """Run what is not done yet, in order; returns the seconds of each step that ran. `passed` hears of every step."""
    todo = list(steps)
    spent: dict[str, float] = {}
    beside: dict[str, _Aside] = {}
    width = max(len(step.name) for step in todo)

    def wait_for(names: Iterable[str]) -> None:
        for name in [name for name in names if name in beside]:
            other = beside.pop(name)
            spent[name] = other.ended()
            passed(other.step)

    for number, step in enumerate(todo, 1):
        wait_for([*step.after, *(name for name, other in beside.items() if other.error)])
        head = f"[{number}/{len(todo)}] {step.name:<{width}}"
        if done := step.done():
            print(f"{head}  {'already there' if done is True else done}", file=sys.stderr, flush=True)
            passed(step)
        elif step.aside:
            beside[step.name] = _Aside(step, partial(_perform, step, head))
            beside[step.name].start()
        else:
            spent[step.name] = _perform(step, head)
            passed(step)
    wait_for(list(beside))
    return spent
