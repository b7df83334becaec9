"""Steps: declared with name, check and action; skipped when done, timed, with an ETA, resumable.

One after the other, but for those that go on `aside`: what mostly waits for a mirror leaves a processor to a compiler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testbed.base import locks, store, times
from testbed.base.screen import LONG, Screen, duration, row

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


class _Background(threading.Thread):
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


def _perform(step: Step, screen: Screen) -> float:
    warm = step.warm()
    usual = times.expected(step.name, warm)
    known = f" (took {duration(usual.seconds)} {usual.where})" if usual else ""
    screen.keep(f"{step.name} begins: {step.title}{known}")
    progress = screen.begin(step.name, usual.seconds if usual else None)
    try:
        step.act(progress.say)
    finally:
        screen.end(progress)
    times.record(step.name, progress.elapsed, warm)
    (screen.show if progress.elapsed >= LONG else screen.keep)(row(step.name, progress.elapsed, step.title))
    return progress.elapsed


def perform(steps: Iterable[Step], passed: Callable[[Step], None] = lambda step: None) -> dict[str, float]:
    """Run what is not done yet, in order; returns the seconds of each step that ran. `passed` hears of every step."""
    todo = list(steps)
    with Screen() as screen:
        spent = _performed(todo, screen, passed)
        screen.keep(f"done: {', '.join(spent) or 'nothing was to do'}")
    return spent


def _performed(todo: list[Step], screen: Screen, passed: Callable[[Step], None]) -> dict[str, float]:
    spent: dict[str, float] = {}
    background: dict[str, _Background] = {}

    def wait_for(names: Iterable[str]) -> None:
        for name in [name for name in names if name in background]:
            other = background.pop(name)
            spent[name] = other.ended()
            passed(other.step)

    for step in todo:
        wait_for([*step.after, *(name for name, other in background.items() if other.error)])
        if done := step.done():
            screen.keep(f"{step.name}: {'already there' if done is True else done}")
            passed(step)
        elif step.aside:
            background[step.name] = _Background(step, partial(_perform, step, screen))
            background[step.name].start()
        else:
            spent[step.name] = _perform(step, screen)
            passed(step)
    wait_for(list(background))
    return spent
