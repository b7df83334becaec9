"""What the router asks, and what it hears: that the group is awake, or what its client is told, in OpenAI's form."""

from __future__ import annotations

import json
from dataclasses import dataclass

GROUP, STREAM = "x-sparkloom-group", "x-sparkloom-stream"  # which group is asked for; whether the client streams
AWAKE = "x-sparkloom-awake"  # in an answer, which no client sees: the router sends the request to the engine
SOONEST, LATEST = 5, 60  # seconds of Retry-After: SDKs wait that long by themselves


def later(seconds: float) -> int:
    return int(min(LATEST, max(SOONEST, round(seconds))))


def span(seconds: float) -> str:
    """As people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


@dataclass(frozen=True)
class Refusal:
    status: int
    code: str
    words: str
    again: int | None = None  # seconds of Retry-After
    awake: bool = False

    def body(self) -> bytes:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return json.dumps({"error": {"message": self.words, "type": kind, "code": self.code}}).encode()

    def headers(self) -> dict[str, str]:
        later = {} if self.again is None else {"Retry-After": str(self.again)}
        return {**later, AWAKE: "true"} if self.awake else later


def awake(name: str) -> Refusal:
    """In words for a client too: a router tries only so often."""
    return Refusal(503, "model_wakes", f"{name} is awake now; try again", SOONEST, awake=True)


def wakes(name: str, seconds: float, since: float | None) -> Refusal:
    begun = "" if since is None else f" since {span(since)}"
    return Refusal(503, "model_wakes", f"{name} starts{begun}; try again in {span(seconds)}", later(seconds))


def failed(name: str, why: str, seconds: float) -> Refusal:
    return Refusal(503, "model_not_up", f"{name} did not start: {why}", later(seconds))


def stopped(name: str, who: str) -> Refusal:
    return Refusal(503, "model_stopped", f"{name} is stopped by {who}; `sparkloom start {name}` brings it back", LATEST)


def in_turn(name: str, mate: str, seconds: float, doing: str) -> Refusal:
    words = f"{name} takes turns with {mate}, which {doing}; {name} can start in {span(seconds)} at the earliest"
    return Refusal(503, "model_in_turn", words, later(seconds))


def full(name: str, most: int) -> Refusal:
    return Refusal(503, "queue_full", f"{most} requests wait for {name} already", SOONEST)


def blind(name: str, why: str) -> Refusal:
    return Refusal(503, "model_not_up", f"{name} sleeps and cannot be started now: {why or 'no look yet'}", 10)


def unknown(name: str) -> Refusal:
    return Refusal(404, "model_not_found", f"no model on demand is called {name!r}")


def unproven(name: str) -> Refusal:
    """Of the router's too, for the minute in which one of both reads a new key of the engine before the other."""
    return Refusal(503, "model_not_up", f"{name} is woken by the site's router alone; try again", 10)


def leaves(name: str) -> Refusal:
    return Refusal(503, "model_wakes", f"what starts {name} is made anew itself; try again", SOONEST)
