"""A run of site.yml as it is told to a person: its parts, what each changed, and what ended it.

The playbook does the work and its whole output is kept; the callback `sparkloom_verdict` says how far it is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sparkloom.base import document
from sparkloom.base.repository import REPO, WORK
from sparkloom.site import play

EVERY = 0.25  # seconds between two looks
EVENTS = "SPARKLOOM_PROGRESS"  # names the file in which a run tells how far it is
ARGUMENTS = "Validating arguments against arg spec"  # Ansible's own task at the begin of each role
PATIENCE = 20  # seconds for Ansible's own end
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Part:
    """One playbook of site.yml."""

    tag: str
    name: str
    begun: float | None = None
    ended: float | None = None
    changes: int = 0
    failed: bool = False
    worked: bool = False  # did more than look at its arguments, which it does with any --tags

    @property
    def state(self) -> str:
        if self.failed:
            return "failed"
        if self.begun is None:
            return "waits"
        if self.ended is None:
            return "runs"
        return "changed" if self.changes else "ok" if self.worked else "skipped"

    def seconds(self, now: float) -> float:
        return 0.0 if self.begun is None else (self.ended or now) - self.begun


@dataclass(slots=True)
class Progress:
    parts: list[Part]
    task: str = ""
    does: str = ""  # the function of ours that the task asks for
    since: float = 0.0  # when the task began
    said: dict[str, str] = field(default_factory=dict)  # by host, what the task said last while it works
    errors: list[dict[str, str]] = field(default_factory=list)  # the first of each host and text
    changes: Counter[str] = field(default_factory=Counter)  # by host
    serves: str = ""  # what this run has proved
    measured: dict[str, float] = field(default_factory=dict)  # as `site.expected` keeps it
    code: int | None = None  # of ansible-playbook
    interrupted: int = 0  # the signal that ended it

    @property
    def good(self) -> bool:
        return self.code == 0

    def take(self, event: dict[str, Any]) -> None:
        kind, at = event["kind"], float(event["at"])
        if kind == "play":
            self._play(event["tags"], at)
        elif kind == "task":
            self.task, self.does, self.since, self.said = event["name"], event.get("does", ""), at, {}
            for part in self._running():
                part.worked |= ARGUMENTS not in self.task
        elif kind == "said":
            self.said[event["host"]] = event["text"]
        elif kind == "changed":
            self.changes[event["host"]] += 1
            for part in self._running():
                part.changes += 1
        elif kind == "failed":
            self._failed({key: str(event[key]) for key in ("host", "task", "said")})
        elif kind == "end":
            self.serves = str(event.get("serves") or "")
            self.measured = event.get("measured") or {}
            self.close(at, failed=bool(event["failed"]))

    def _failed(self, error: dict[str, str]) -> None:
        """Each once: a role that handles a failure says its words again, with what it did about it."""
        if all(error["said"] not in known["said"] for known in self.errors):
            self.errors = [known for known in self.errors if known["said"] not in error["said"]] + [error]

    def _play(self, tags: list[str], at: float) -> None:
        part = next((part for part in self.parts if part.tag in tags), None)
        if part and part.ended is None and part.begun is not None:
            return  # another play of the same playbook
        self.close(at)
        if part:
            part.begun = at

    def _running(self) -> Iterator[Part]:
        return (part for part in self.parts if part.begun is not None and part.ended is None)

    def close(self, at: float, *, failed: bool = False) -> None:
        self.said, self.does = {}, ""
        for part in self._running():
            part.ended, part.failed = at, failed


def tell(kind: str, **what: Any) -> None:
    """An event for who started this run and reads: a line, written at once, also by a task's own process."""
    if target := os.environ.get(EVENTS):
        line = json.dumps({"kind": kind, "at": time.time(), **what}, default=str) + "\n"
        with suppress(OSError), Path(target).open("ab", buffering=0) as stream:
            stream.write(line.encode())


def parts(playbook: Path) -> list[Part]:
    """What a playbook of playbooks imports, in its order."""
    return [Part(entry["tags"][0], entry["name"]) for entry in document.own(playbook.read_text(encoding="utf-8"))]


def run(
    inventory: Path,
    extra: Iterable[str],
    log: Path,
    show: Callable[[Progress], object],
    playbook: Path = REPO / "site.yml",
    password: str = "",
) -> Progress:
    """Runs to the end and shows every change of the picture; what Ansible prints goes to `log`.

    `password` is sudo's: Ansible's own question for it would be painted over by the picture.
    """
    progress = Progress(parts(playbook))
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [*extra, *(["--become-password-file", "-"] if password else [])]
    with tempfile.TemporaryDirectory() as folder, log.open("w", encoding="utf-8") as output:
        told = Path(folder) / "progress"
        told.touch()
        command, env = play.command(playbook, inventory, words), play.environment(**{EVENTS: str(told)})
        with (
            told.open(encoding="utf-8") as events,
            _ended_by(progress),
            _started(command, env, output, password) as process,
        ):
            try:
                while process.poll() is None:
                    _read(events, progress)
                    show(progress)
                    time.sleep(EVERY)
            except KeyboardInterrupt:
                progress.interrupted = progress.interrupted or signal.SIGINT
                _interrupt(process)
            _read(events, progress)
    progress.code = process.returncode
    progress.close(time.time(), failed=not progress.good)  # nothing told of the end of one that was killed
    show(progress)
    return progress


def _started(command: list[str], env: dict[str, str], output: IO[str], password: str) -> subprocess.Popen[str]:
    """In a session of its own: Ctrl-C reaches it once, through us, and nothing of it can ask behind the picture."""
    process = subprocess.Popen(
        command,
        cwd=WORK,
        env=env,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin
    with suppress(BrokenPipeError), process.stdin as ears:  # it may have ended without reading
        ears.write(password)
    return process


@contextmanager
def _ended_by(progress: Progress) -> Iterator[None]:
    """A closed window and a kill end the run as Ctrl-C does, for nobody is left to tell of it; `nohup` is heeded."""

    def stop(number: int, _: object) -> None:
        progress.interrupted = number
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in ENDINGS if ours}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Ansible ends its tasks and writes why; one that does not, or a second Ctrl-C, ends it at once."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)


def _read(events: IO[str], progress: Progress) -> None:
    """What came since the last look; a line that is still being written waits."""
    while True:
        before = events.tell()
        line = events.readline()
        if not line.endswith("\n"):
            events.seek(before)
            return
        progress.take(json.loads(line))
