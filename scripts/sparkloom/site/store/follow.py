"""Watch what one node does: a line whenever there is something new to say, a verdict at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.amount import bar, span
from sparkloom.launch.downloads import amount
from sparkloom.render.k3s import paths
from sparkloom.site.store.remote import Remote

EVERY = 5.0  # seconds between two lines
FIRST = 1.0
LOST = {"failed", "none"}  # states of a transfer that came to nothing
SLOWEST = 3.0  # seconds between two looks, when it takes long
Poll = Callable[[], dict[str, Any]]
Say = Callable[[str], object]


def follow(node: str, poll: Poll, say: Say, pause: float = 0.5) -> dict[str, Any]:
    """The last status, once the transfer has ended."""
    return _until(lambda status: status["state"] in {"done", *LOST}, node, poll, say, pause)


def listed(node: str, poll: Poll, say: Say, pause: float = 0.1) -> dict[str, Any]:
    """The first status that tells what is to come: the digest of each model's manifest."""
    return _until(lambda status: status.get("manifests") or status["state"] in LOST, node, poll, say, pause)


def _until(ended: Callable[[dict[str, Any]], object], node: str, poll: Poll, say: Say, pause: float) -> dict[str, Any]:
    before, shown = "", time.monotonic() - EVERY + FIRST
    while True:
        status = poll()
        if ended(status):
            return status
        text = line(node, status)
        if text != before and time.monotonic() - shown >= EVERY:
            say(text)
            before, shown = text, time.monotonic()
        time.sleep(pause)
        pause = min(pause * 1.3, SLOWEST)


@dataclass(slots=True)
class Clock:
    """What a node does by itself, such as a pull, has a time of its own; the start that follows counts none of it."""

    seconds: float
    variable: str = "model_serving_image_seconds"
    what: str = "the pull"
    now: Callable[[], float] = time.monotonic
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.now()

    @property
    def passed(self) -> float:
        return self.now() - self.begun

    def watch(self, remote: Remote, question: str, asked: Mapping[str, Any], say: Say) -> dict[str, Any]:
        """What the node says of it at last; once the time is over it is left to itself."""
        return follow(remote.node, self.on(lambda: dict(remote.ask(question, asked))), say)

    def on(self, poll: Poll) -> Poll:
        """The same answers, until the time is over."""

        def asked() -> dict[str, Any]:
            status = poll()
            if status["state"] in {"done", *LOST} or self.passed <= self.seconds:
                return status
            far = f"{amount(status['have'])} of {amount(status['total'])}" if status["total"] else status["state"]
            cure = f"run this again and it is found at work, or raise {self.variable}"
            cause = f"not here after {span(self.seconds)} ({far}); {self.what} goes on: {cure}"
            return {**status, "state": "failed", "cause": cause}

        return asked


def line(node: str, status: dict[str, Any]) -> str:
    if status["state"] != "moving":
        return f"{node}  {status['state']}"
    have, total = status["have"], status["total"]
    parts = [f"{node}  {bar(have / total) if total else ''}", f"{amount(have)} of {amount(total)}"]
    if status["rate"] > 0:
        parts += [f"{amount(status['rate'])}/s", f"{span((total - have) / status['rate'])} left"]
    return "  ".join([*parts, f"{status['files_done']}/{status['files']} files"])


def ended(node: str, status: dict[str, Any]) -> str:
    """One line for what came of it."""
    if status["state"] != "done":
        cause = status.get("cause") or "its transfer is gone; run this again"
        return f"{node}: {cause}"
    moved = f"{amount(status['moved'])} moved in {span(status['seconds'])}"
    return f"{node}: {amount(status['total'])} verified, {moved} ({status['files']} files)"


def measured(what: str, moved: float, seconds: float) -> dict[str, float]:
    """Bytes a second, by which the next run foresees how long the like takes; of less than a GB it says nothing."""
    return {what: moved / seconds} if moved >= 1e9 else {}


def pulled(node: str, reference: str, status: dict[str, Any], seconds: float) -> str:
    if status["state"] == "done":
        return f"{node}: {reference} is here, {amount(status['moved'])} in {span(seconds)}"
    cause = status.get("cause") or "its pull is gone; run this again"
    if status["state"] == "failed" and "model_serving_image_seconds" in cause:
        return f"{node}: {reference}: {cause}"
    load = f"`sudo k3s ctr -n k8s.io images import FILE` on {node}, or its archive in {paths.IMAGES}"
    return f"{node}: {reference} cannot be pulled: {cause}. Without a way out bring it as a file: {load}"
