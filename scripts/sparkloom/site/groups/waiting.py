"""Wait for a group of ranks to become ready, with one line for every change, or say which rank cannot and why."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sparkloom.onnode.now import pods
from sparkloom.onnode.now.labels import CONFIG_HASH
from sparkloom.onnode.now.pods import HOPELESS, STUCK, State, state
from sparkloom.site.client import Client

# ... but in these words the kubelet says that its node was slower than its patience: it goes on where it was.
SLOW = re.compile(r"context deadline exceeded|is reserved for", re.I)
# A rank's supervisor speaks in lines of its own between the engine's.
SUPERVISOR = re.compile(r"^\[sparkloom rank \d+ epoch (?P<epoch>\d+)\] (?P<phase>\w+): (?P<text>.*)")
AGAIN = "again"  # the same failure twice without a token: the next load would end with it too
LOG_LINES = 400
LOG_EVERY = 3.0
KEPT_LINES = 12
NO_PODS_AFTER = 30.0


@dataclass(slots=True)
class Outcome:
    ready: bool
    seconds: float
    message: str
    states: list[State] = field(default_factory=list)


@dataclass(slots=True)
class ServedGroup:
    """Which pods belong together, and what counts as given up."""

    labels: dict[str, str]
    config_hash: str
    ranks: int
    timeout: float
    restarts: int = 3
    read: str = ""  # the hash of what every rank should have read
    stuck_after: float = 90.0


def spoken(one: State, log: Iterable[str]) -> State:
    """The state with what its supervisor said last."""
    for line in reversed(list(log)):
        if match := SUPERVISOR.match(line):
            return replace(one, phase_said=match["phase"], said=match["text"])
    return one


def wait(
    source: Client,
    group: ServedGroup,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Polls until every rank is ready, one has failed for good, or the time is over."""
    begun, shown, stuck_since = clock(), dict[str, str](), dict[str, float]()
    voices, readings, states = Voices(source), Readings(source, group.read, say), list[State]()
    while True:
        now = clock() - begun
        mine = [
            p for p in source.pods(group.labels) if (p.metadata.annotations or {}).get(CONFIG_HASH) == group.config_hash
        ]
        states = readings.current([voices.heard(state(pod), now) for pod in mine], now)
        voices.begun = True
        for one in states:
            _progress(one, now, shown, say)
        if len(states) == group.ranks and all(one.ready for one in states):
            if differing := _differing(states):
                return Outcome(False, now, differing, states)
            return Outcome(True, now, f"{group.ranks} ranks ready after {now:.0f} s", states)
        if rank := readings.stubborn():
            return Outcome(False, now, f"rank {rank} reads another plan than was applied, each time; {CURE}", states)
        if lost := _lost(states, group, now, stuck_since):
            return Outcome(False, now, _why(source, lost), states)
        if not states and now > NO_PODS_AFTER and (refused := source.refusals(now)):
            return Outcome(False, now, f"no pod was made: {refused[-1]}")
        if now > group.timeout:
            words = [f"rank {s.rank} {s.reason or s.phase} {s.said}".strip() for s in states if not s.ready]
            waiting = ", ".join(words) or "no pods"
            return Outcome(False, now, f"not ready after {group.timeout:.0f} s: {waiting}", states)
        sleep(2)


class Voices:
    """The ranks' supervisors by their logs, each read every few seconds."""

    def __init__(self, source: Client) -> None:
        self.source, self.begun = source, False
        self._warned, self._warnings = 0.0, dict[str, str]()  # a pod that was just made waits for nothing yet
        self._logs: dict[str, tuple[float, list[str]]] = {}
        self._before: dict[str, set[str]] = {}  # what a pod that ran before this wait had said: of another try

    def heard(self, one: State, now: float) -> State:
        """The state with its supervisor's last word, or the last line of an engine without one."""
        if one.phase == "Pending":
            return self._waits(one, now)
        if one.phase != "Running" or one.reason:
            return one
        at, lines = self._logs.get(one.pod, (-LOG_EVERY, []))
        if now - at >= LOG_EVERY:
            lines = self.source.tail(one.pod, LOG_LINES)
            self._logs[one.pod] = (now, lines)
        repeated = [line for line in lines if (match := SUPERVISOR.match(line)) and match["phase"] == AGAIN]
        if not self.begun:
            self._before[one.pod] = set(repeated)
        if fresh := [line for line in repeated if line not in self._before.get(one.pod, ())]:
            one = replace(one, again=spoken(one, fresh).said)
        heard = spoken(one, lines)
        return heard if heard.said or not lines else replace(heard, said=lines[-1])

    def _waits(self, one: State, now: float) -> State:
        """The last warning about a pod that is still made: an attachment, a ConfigMap, a node."""
        if now >= self._warned + LOG_EVERY:
            self._warned, self._warnings = now, self.source.warnings()
        told = "" if one.word in pods.PULL else pods.explained(self._warnings.get(one.pod, ""), one.node)
        return replace(one, said=told) if told else one


def _progress(one: State, now: float, shown: dict[str, str], say: Callable[[str], None]) -> None:
    """A line whenever something about a rank changed."""
    word = "ready" if one.ready else (one.word or one.phase_said or one.phase.lower())
    again = f", restart {one.restarts}" if one.restarts else ""
    log = f"  | {one.said[:160]}" if one.said and not one.ready else ""
    text = f"rank {one.rank} on {one.node}: {word}{again}{log}"
    if shown.get(one.rank) != text:
        shown[one.rank] = text
        say(f"{now:5.0f} s  {text}")


def _differing(states: list[State]) -> str:
    """One tag may be two images: ranks that differ in a kernel's version hang or lie."""
    images = {one.image: one for one in states if one.image}
    if len(images) < 2:
        return ""
    told = ", ".join(f"rank {one.rank} on {one.node} runs {image}" for image, one in images.items())
    return f"not the same image on every rank: {told}; pin engine.digest in the profile"


def _lost(states: list[State], group: ServedGroup, now: float, stuck_since: dict[str, float]) -> State | None:
    up = len(states) == group.ranks and all(one.phase == "Running" and not one.reason for one in states)
    for one in states:
        if (one.restarts >= group.restarts or one.phase_said in HOPELESS or one.again) and not one.ready:
            return one
        missing = up and one.phase_said == "missing"  # while a pod is still made, its rank has not come yet
        hopeless = one.word in STUCK and not SLOW.search(one.reason)
        if not hopeless and not missing:
            stuck_since.pop(one.pod, None)
        elif now - stuck_since.setdefault(one.pod, now) > group.stuck_after:
            return one
    return None


def _why(source: Client, one: State) -> str:
    if one.again and one.phase_said not in HOPELESS:
        return f"rank {one.rank} on {one.node}: {one.again}"
    if one.phase_said in (*HOPELESS, "missing"):
        return f"rank {one.rank} on {one.node}: {one.said}"
    words = f"rank {one.rank} on {one.node}: {one.reason or one.phase}, {one.restarts} restarts"
    log = one.last_words.splitlines() or source.tail(one.pod, KEPT_LINES, previous=True)
    return "\n".join([words, *(f"  {line}" for line in log[-KEPT_LINES:])])


TIMES = 2  # a rank is made anew; one that still reads something else is an error of ours, not of a moment
ASKED = 5  # times in vain; then what cannot be asked is left alone
EVERY = 3.0
CURE = "does somebody else apply this profile's ConfigMaps?"
NO_PLAN = "is no plan of a group"  # what onnode/rank/main.py says of a file that it cannot read


class Readings:
    """`wanted` is the hash that each rank should tell; empty for what was applied without one."""

    def __init__(self, source: Client, wanted: str, say: Callable[[str], None]) -> None:
        self.source, self.wanted, self.say = source, wanted, say
        self.right: set[str] = set()  # pods, by their uid
        self._renewed: dict[str, int] = {}  # by rank
        self._asked: dict[str, tuple[int, float]] = {}
        self._going: set[str] = set()

    def current(self, states: list[State], now: float) -> list[State]:
        """The states without those of pods that go; a pod counts as ready only once it told what it read."""
        return [self._judged(one, now) for one in states if one.uid not in self._going] if self.wanted else states

    def stubborn(self) -> str:
        """The rank that read something else each time, or nothing."""
        return next((rank for rank, times in self._renewed.items() if times > TIMES), "")

    def _judged(self, one: State, now: float) -> State:
        if one.uid in self.right:
            return one
        if NO_PLAN in one.last_words and not one.ready:
            self._renew(one, "no plan at all")
        elif one.phase == "Running" and not one.reason:
            self._ask(one, now)
        return one if one.uid in self.right else replace(one, ready=False)

    def _ask(self, one: State, now: float) -> None:
        times, at = self._asked.get(one.uid, (0, -EVERY))
        if now - at < EVERY:
            return
        self._asked[one.uid] = (times + 1, now)
        read = str((self.source.report(one.pod) or {}).get("read") or "")
        if read == self.wanted or (not read and times + 1 >= ASKED):
            self.right.add(one.uid)
        elif read:
            self._renew(one, f"plan {read}")

    def _renew(self, one: State, found: str) -> None:
        self._renewed[one.rank] = self._renewed.get(one.rank, 0) + 1
        self._going.add(one.uid)
        if self._renewed[one.rank] <= TIMES:
            self.say(f"rank {one.rank} on {one.node}: read {found}, applied is {self.wanted}; its pod is made anew")
            self.source.delete_pod(one.pod)
