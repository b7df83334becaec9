"""`sparkloom matrix SPEC run`: every cell that has no result yet, one after the other.

A cell's result is one file, written whole when the cell has ended. So whatever stops a run, the next one begins with
the cell that was under way. What a killed run left running keeps the folder's lock, and is waited for.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom import case
from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.measure.interrupt import interruptible
from sparkloom.measure.matrix import child, report, report_words
from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.cell import Seams, SiteTrouble, Work
from sparkloom.measure.matrix.spec import STATUSES, Cell, CellResult, Spec
from sparkloom.site.endpoint import reach
from sparkloom.site.play import program

LOCK = ".running"


class Options(NamedTuple):
    results: Path | None = None
    output: Path | None = None
    url: str | None = None
    ca: Path | None = None
    key_file: Path | None = None
    switch: str | None = None
    logs: str | None = None
    try_known_bad: bool = False
    again: tuple[str, ...] = ()
    group: str | None = None


def run(spec_path: Path, options: Options, say: Callable[[str], object], *, live: bool = False) -> dict[str, Any]:
    """Runs what is left of the grid; `stopped` in the answer names the signal that ended it early."""
    spec, text = specs.load(spec_path)
    if options.group:
        spec = spec.model_copy(update={"group": options.group})
    again = {*options.again, *(["skipped"] if options.try_known_bad else [])}
    if wrong := set(options.again) - set(STATUSES):
        message = f"'{sorted(wrong)[0]}' is no status; known: {', '.join(STATUSES)}"
        raise InputError.single("--again", message, rule="bad-status")
    cells = specs.cells(spec, text, try_known_bad=options.try_known_bad)
    folder = options.results or spec_path.parent / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    seams = _seams(spec, options)
    progress = GridProgress(say, live=live)
    asked: list[int] = []
    with _alone(folder, progress) as lock, interruptible(asked.append):
        done = specs.read_results(folder)
        todo = [c for c in cells if not c.skipped and (c.id not in done or done[c.id].status in again)]

        def tick(what: str, seconds: float) -> bool:
            progress.tick(what, seconds)
            return bool(asked)

        progress.plan(cells, todo, [r.seconds for r in done.values() if r.seconds])
        for cell in todo:
            work = Work(spec, cell, folder, seams, tick, lock, forced=options.try_known_bad)
            progress.cell(cell)
            try:
                measured = work.run()
            except child.Stopped:
                break
            except SiteTrouble as error:
                raise InputError.single(cell.id, f"{error}; nothing is recorded for this cell", rule="site") from None
            progress.done(keep(folder, measured))
            report.write(spec_path, folder, options.output)
        told = report.write(spec_path, folder, options.output)
    return {**told, "stopped": signal.Signals(asked[0]).name if asked else None}


def exit_code(told: dict[str, Any]) -> int:
    """As the shell says it for a signal; 1 when no cell was fine."""
    if told["stopped"]:
        return 128 + signal.Signals[told["stopped"]].value
    return 0 if told["winner"] else 1


def keep(folder: Path, measured: dict[str, Any]) -> CellResult:
    """Whole or not at all."""
    result = CellResult.model_validate(measured)
    files.write(folder / f"{result.id}.json", json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    return result


def _seams(spec: Spec, options: Options) -> Seams:
    inventory = spec.inventory or str(REPO / "inventories" / "gb10")
    own, group = program("sparkloom"), [spec.group] if spec.group else []
    switch = shlex.split(options.switch) if options.switch else [program("ansible-playbook"), "playbooks/switch.yml"]
    logs = [[own, "logs", *group, "-i", inventory], [own, "logs", *group, "-i", inventory, "--previous"]]
    if options.logs is not None:
        logs = [shlex.split(options.logs)] if options.logs else []
    url = options.url or spec.url
    if url:
        return Seams(switch, [own, "bench"], logs, url, options.ca, options.key_file)
    known = reach(case.cluster(inventory), inventory)
    return Seams(switch, [own, "bench"], logs, known.url, options.ca or known.ca, options.key_file or known.key_file)


@contextmanager
def _alone(folder: Path, progress: GridProgress) -> Iterator[int]:
    """The lock of the folder; what a killed run started inherits it and is waited for."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                owner = os.pread(lock, 32, 0).decode(errors="replace").strip()
                if owner.isdigit() and _lives(int(owner)):
                    message = f"another run (process {owner}) works in this folder; wait for it, or end it"
                    raise InputError.single(str(folder), message, rule="in-use") from None
                progress.tick("waiting for what a killed run started", 0.0)
                time.sleep(0.2)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class GridProgress:
    """On a terminal one line that changes; else a line for every step and one a minute."""

    def __init__(self, say: Callable[[str], object], *, live: bool) -> None:
        self._say, self._live = say, live
        self._cell, self._what, self._said = "", "", 0.0
        self._spent: list[float] = []
        self._left = self._began = 0.0

    def plan(self, cells: Collection[Cell], todo: Collection[Cell], seconds: list[float]) -> None:
        self._spent, self._left, self._all = list(seconds), len(todo), len(cells)
        self._axes = specs.differing([cell.settings for cell in cells])
        skipped = sum(cell.skipped for cell in cells)
        self._say(
            f"{len(cells)} cells: {len(cells) - skipped - len(todo)} done, {skipped} skipped as known to fail, "
            f"{len(todo)} to run{self._eta()}\n"
        )

    def cell(self, cell: Cell) -> None:
        self._began, self._what = time.monotonic(), ""
        shown = ", ".join(f"{report_words.short(n)} {report_words.value(cell.settings.get(n))}" for n in self._axes)
        self._cell = f"cell {cell.number} of {self._all} ({shown})"

    def tick(self, what: str, seconds: float) -> None:
        """Every fifth of a second; `what` may carry behind a colon what the command said last."""
        now = time.monotonic()
        step, _, detail = what.partition(": ")
        line = f"{self._cell}  {step} {_time(seconds)}{self._eta()}".lstrip()
        if self._live:
            if now - self._said >= 0.4:
                self._said = now
                self._say(f"\r\x1b[2K{line}; {detail}")
        elif step != self._what or now - self._said >= 60:
            self._what, self._said = step, now
            self._say(f"{line}\n")

    def done(self, result: CellResult) -> None:
        self._spent.append(result.seconds or 0.0)
        self._left -= 1
        speeds = ", ".join(f"n={lv.concurrency} {report_words.figure(lv.speed)}" for lv in result.levels if lv.speed)
        words = "; ".join(part for part in (result.note, speeds and f"{speeds} tok/s") if part)
        begin = "\r\x1b[2K" if self._live else ""
        self._say(
            f"{begin}{self._cell}  {result.status} in {_time(result.seconds or 0.0)}{f': {words}' if words else ''}\n"
        )

    def _eta(self) -> str:
        if not self._spent or not self._left:
            return ""
        mean = sum(self._spent) / len(self._spent)
        running = min(time.monotonic() - self._began, mean) if self._began else 0.0
        return f", about {_time(max(0.0, mean * self._left - running))} left"


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
