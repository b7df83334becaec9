"""What a rank says: lines for its log, a status file for probes, last words for the kubelet."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sparkloom.base.visible import but_colours, visible
from sparkloom.onnode.rank import answers, causes, proof
from sparkloom.onnode.rank.plan import GroupPlan

SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD")
SHORTEST = 6  # a shorter value would blank ordinary words
EVERY = 10.0
STATUS = "status.json"
STOPPING = "stopping"  # the phase in which an engine is stopped, said with why
STALE = 30.0  # seconds without a beat: what was written is no news any more
GONE = 300.0  # the same, until a supervisor counts as stuck for good: a node that swaps or compiles is only slow


class StatusLog:
    """Lines look like `[sparkloom rank 1 epoch 2] phase: text`; `site/groups/waiting.py` reads them."""

    def __init__(self, plan: GroupPlan, rank: int) -> None:
        self.plan, self.rank, self.epoch = plan, rank, 0
        self.file = Path(plan.run) / STATUS
        self.status: dict[str, Any] = {
            "rank": rank, "epoch": 0, "phase": "new", "text": "", "cause": "", "serving": False,
            "since": time.time(), "beat": time.time(), "transport": "", "engine": None, "schedulers": [],
            "rails": [], "read": "", "compiling": False, "took": None, "moved": None, "requests": None, "spent": 0,
            "stops": {}, "weights": [],
        }  # fmt: skip
        known = {v for k, v in os.environ.items() if any(s in k.upper() for s in SECRET)}
        known.add(answers.key() or "")  # SGLang prints it among its arguments
        with contextlib.suppress(proof.NoSecret):
            known.add(proof.secret(plan.secret).decode(errors="replace"))
        self._secrets = sorted((v for v in known if len(v) >= SHORTEST), key=len, reverse=True)
        self._last, self._at = "", 0.0
        self._lock = threading.Lock()

    def say(self, phase: str, text: str) -> None:
        """A line, and the same as the rank's state."""
        text = self.hidden(" ".join(text.split()))
        self.status |= {"phase": phase, "text": text, "epoch": self.epoch}
        if phase == STOPPING:  # kept through the next start: whoever looks later wants to know why there was one
            self.status["ended"] = {"epoch": self.epoch, "why": text, "at": time.time()}
        self._last, self._at = text, time.monotonic()
        self._write(f"[sparkloom rank {self.rank} epoch {self.epoch}] {phase}: {text}")
        self.keep()

    def note(self, phase: str, text: str) -> None:
        """A line that leaves the rank's state as it is."""
        self._write(f"[sparkloom rank {self.rank} epoch {self.epoch}] {phase}: {self.hidden(text)}")

    def progress(self, phase: str, text: str) -> None:
        """The same while something lasts: a line when more than its numbers changed, and every ten seconds."""
        moved = phase != self.status["phase"] or shape(text) != shape(self._last)
        if (moved and time.monotonic() - self._at > 1) or time.monotonic() - self._at >= EVERY:
            self.say(phase, text)

    def cause(self, phase: str, text: str) -> None:
        """Why nothing is served: one line, kept for the probes and for the kubelet."""
        text = self.hidden(" ".join(text.split()))
        self.status |= {"cause": text, "cause_phase": phase, "cause_epoch": self.epoch}
        with contextlib.suppress(OSError):  # no kubelet here
            Path(self.plan.words).write_text(f"rank {self.rank} on {self.plan.member(self.rank).node}: {text}\n")
        self.say(phase, text)

    def stopped(self, why: str) -> None:
        """One more epoch is over."""
        kind = causes.stop(why)
        self.status["stops"] = {**self.status["stops"], kind: self.status["stops"].get(kind, 0) + 1}

    def faults(self, what: str, found: list[str]) -> None:
        """What is wrong with this rank's `rails` or `weights` while its engine runs, which tells nothing of it."""
        if (told := [self.hidden(fault) for fault in found]) != self.status[what]:
            self.status[what] = told
            self.note(what, "; ".join(told) or "as planned again")
            self.keep()

    def clear(self) -> None:
        """What was named is no more."""
        self.status |= {"cause": "", "cause_phase": ""}

    def mended(self, phases: Collection[str]) -> None:
        """What was named under one of these is right again; why an epoch failed stays known."""
        if self.status.get("cause_phase") in phases:
            self.clear()

    def engine(self, line: str) -> None:
        """What an engine prints may hold what a client sent it: its colours stay, its commands to terminals do not."""
        self._write(f"[rank {self.rank} epoch {self.epoch}] {but_colours(self._blanked(line))}")

    def hidden(self, text: str) -> str:
        """Our own words, which quote others: a stranger's hello, an engine's last line, a kernel's message."""
        return visible(self._blanked(text))

    def _blanked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def keep(self) -> None:
        """The status file, replaced in one step; its time says that this process still runs."""
        self.status["beat"] = time.time()
        aside = self.file.with_suffix(".new")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(json.dumps(self.status))
            aside.replace(self.file)
        except OSError as error:
            self._write(f"[sparkloom rank {self.rank} epoch {self.epoch}] status: {self.file}: {error.strerror}")

    def _write(self, line: str) -> None:
        # nobody reads the log any more; the group goes on
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def shape(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def verdict(what: str, status: Mapping[str, Any], now: float) -> tuple[bool, str]:
    """A kubelet's question, never passed on to the engine: the verdict, and the words for the pod's events."""
    who = f"rank {status['rank']} epoch {status['epoch']}"
    age = now - status["beat"]
    if what == "live":
        return age < GONE, f"{who}: the supervisor was last heard {age:.0f} s ago"
    if what == "started":
        return age < GONE, f"{who}: {status['phase']}"
    text = status["cause"] or status["text"]
    return bool(status["serving"]) and age < STALE, f"{who} {status['phase']}: {text}"
