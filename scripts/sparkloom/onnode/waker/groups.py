"""What each group is at, who may ask for it now, and what is to be done next: pure, by a clock that is given.

The cluster decides: a group is what the last look found, whoever made it so. Kept here is only what no look shows:
when it was last used, who waits, what was begun when, and what failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sparkloom.onnode.waker import refusal
from sparkloom.onnode.waker.refusal import Refusal
from sparkloom.onnode.waker.state import HOLD, Act, Group, Seen, State, Use

MOST = 64  # who may wait for a group
FRESH = 30.0  # seconds for which a look is one of now
PLACE = 240.0  # seconds for a place to become free: a drain, an engine's end, a container's removal
SOON = float(refusal.SOONEST)
UNKNOWN_LOAD = 30.0  # seconds that are told where nobody knows how long a start takes


class Groups:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.states: dict[str, State] = {}
        self.problem = "the cluster was not seen yet"  # why it cannot be looked at, or must not be changed
        self.leaving = False

    # --- what becomes known -----------------------------------------------------------------------------------

    def replace(self, listed: Sequence[Group]) -> None:
        """The file's groups; one that goes on keeps what is known of it."""
        now = self.clock()
        known, self.states = self.states, {}
        for group in listed:
            if group.name in known:
                known[group.name].group = group
            self.states[group.name] = known.get(group.name) or State(group, used=now)

    def looked(self, name: str, seen: Seen, use: Use) -> None:
        state, now = self.states.get(name), self.clock()
        if state is None:
            return
        first, was_ready = state.seen is None, state.ready
        state.seen, state.ending = seen, False
        # Two looks in a row: what opens a connection for a moment, as the page does, uses nothing.
        # What was in use at the last look ended at some time since, and the look may be long ago.
        used = "used" in (use, state.use) or (use == "perhaps" and state.use == "perhaps")
        state.use = use
        if state.ready:
            if not was_ready and not first:
                self._woke(state, now)
            if used or not was_ready:
                state.used = now
        elif state.up:
            again = seen.down and state.wanted is not None  # it is ended first, to be begun anew
            if state.begun is None and not state.failure and not again:
                state.begun = now
            if not state.failure and not state.partial:
                state.used = now
        elif state.wanted is None:
            state.begun = None

    def _woke(self, state: State, now: float) -> None:
        if state.begun is not None:
            state.took = now - state.begun
            state.counts["ready"] += 1
        state.wanted, state.begun, state.failure = None, None, ""

    def answers(self, name: str) -> None:
        """Its engine answers, as was found without the cluster, which does not."""
        state = self.states.get(name)
        if state and state.seen and state.up and not state.ready:
            self.looked(name, state.seen._replace(ready=True, routed=True), "used")

    def silent(self, name: str) -> None:
        """Its supervisor, asked just now, does not say that it is ready."""
        state = self.states.get(name)
        if state and state.seen:
            state.seen = state.seen._replace(ready=False)

    def blind(self, why: str) -> None:
        self.problem = why

    def settle(self) -> None:
        """What no look brings: time that is over, and a turn that somebody else has taken."""
        now = self.clock()
        for state in self.states.values():
            if state.ready or state.stopped:
                state.wanted, state.begun, state.failure = None, None, ""
            elif why := self._hopeless(state, now):
                self._fail(state, why, now)
            elif state.wanted is not None and not state.up and self._blocked(state, now):
                state.wanted = None

    def _hopeless(self, state: State, now: float) -> str:
        limit = state.group.limit_seconds
        if state.failure:
            return ""
        if state.up and state.begun is not None:
            if state.seen and state.seen.down:
                return state.seen.down
            if now - state.begun > limit:
                return f"no token came within {refusal.span(limit)}; `sparkloom status` says what it is at"
        if state.wanted is None or (state.up and state.begun is not None):
            return ""
        late = now - max(state.wanted, state.begun or state.wanted) > PLACE
        return (self.problem or f"its place did not become free within {refusal.span(PLACE)}") if late else ""

    def _fail(self, state: State, why: str, now: float, hold: float = HOLD) -> None:
        state.failure, state.failed, state.hold = why, now, hold
        state.wanted, state.begun = None, None
        state.counts["failed"] += 1

    # --- who asks ---------------------------------------------------------------------------------------------

    def ask(self, name: str) -> Refusal | None:
        """None: it is awake, or who asks may wait for it, which `verdict` says."""
        state, now = self.states.get(name), self.clock()
        if state is None:
            return refusal.unknown(name)
        if state.ready:
            state.used = now
            return None
        if self.leaving:
            return refusal.leaves(name)
        if state.stopped:
            return refusal.stopped(name, state.stopped)
        if state.failure and (rest := state.hold - (now - state.failed)) > 0:
            return refusal.failed(name, state.failure, rest)
        if not self.fresh(state):
            return refusal.blind(name, self.problem)
        if state.waiting >= MOST:
            return refusal.full(name, MOST)
        if blocked := self._blocked(state, now):
            return blocked
        if state.failure:
            state.failure, state.begun = "", None
        state.used = now
        if state.wanted is None:
            state.wanted = now
            if state.up and state.begun is None and not (state.seen and state.seen.down):
                state.begun = now
        return None

    def verdict(self, name: str) -> Refusal | bool:
        """Of one who waits: True when the group answers, False while it is worth waiting."""
        state, now = self.states.get(name), self.clock()
        if state is None:
            return refusal.unknown(name)
        if state.reached:
            return True
        if self.leaving:
            return refusal.leaves(name)
        if state.stopped:
            return refusal.stopped(name, state.stopped)
        if state.failure:
            return refusal.failed(name, state.failure, state.hold - (now - state.failed))
        if state.wanted is None and not state.up:
            return self._blocked(state, now) or refusal.wakes(name, SOON, None)
        if not self.fresh(state) and not state.up:
            return refusal.blind(name, self.problem)
        return False

    def wakes(self, name: str) -> Refusal:
        """For one who does not wait longer."""
        state = self.states[name]
        since = None if state.begun is None else self.clock() - state.begun
        return refusal.wakes(name, self.rest(name), since)

    def rest(self, name: str) -> float:
        """Seconds until it is awake, as far as anybody knows."""
        state = self.states[name]
        if state.ready:
            return SOON
        load = state.group.load_seconds or UNKNOWN_LOAD
        return load if state.begun is None else max(SOON, load - (self.clock() - state.begun))

    def enter(self, name: str) -> None:
        self.states[name].waiting += 1

    def leave(self, name: str) -> None:
        """He has his answer, or went away."""
        if state := self.states.get(name):
            state.waiting, state.used = state.waiting - 1, self.clock()

    # --- what is to be done -----------------------------------------------------------------------------------

    def acts(self) -> list[Act]:
        """One at most for each place; `sleep` is asked again by `may_sleep` when it is done."""
        now, chosen = self.clock(), {}
        for state in sorted(self.states.values(), key=_order):
            place = state.group.place
            if place not in chosen and (act := self._next(state, now)):
                chosen[place] = act
        return list(chosen.values())

    def _next(self, state: State, now: float) -> Act | None:
        name = state.group.name
        if not self.fresh(state):
            return None
        if state.wanted is None:
            return Act("sleep", name) if self._may_sleep(state, now) else None
        if state.ready:
            return None
        if state.up and state.seen and state.seen.down:
            return Act("sleep", name)  # its supervisor starts nothing any more: another one does
        for mate in self._mates(state):
            if mate.up and self._may_sleep(mate, now, asked=True):
                return Act("sleep", mate.group.name)
            if not mate.gone:
                return None
        complete = state.up and not state.partial
        return None if complete or not (state.gone or state.up) else Act("wake", name)

    def may_wake(self, name: str) -> bool:
        """Asked right before it is done, after another look."""
        state = self.states.get(name)
        return bool(state and not self.leaving and self._next(state, self.clock()) == Act("wake", name))

    def may_sleep(self, name: str) -> bool:
        state = self.states.get(name)
        if state is None or self.leaving:
            return False
        if state.wanted is not None:
            return self._next(state, self.clock()) == Act("sleep", name)
        asked = any(mate.wanted is not None for mate in self._mates(state))
        return self._may_sleep(state, self.clock(), asked=asked)

    def _may_sleep(self, state: State, now: float, *, asked: bool = False) -> bool:
        """`asked`: for a mate, who is let in where a failed start holds the place."""
        unused = not (state.waiting or state.wanted is not None) and state.use == "idle"
        rests = state.ready or state.partial or (asked and bool(state.failure))
        idle = now - max(state.used, state.failed if state.failure else 0.0) >= state.group.idle_seconds
        return state.up and self.fresh(state) and unused and rests and idle

    def fresh(self, state: State) -> bool:
        return state.seen is not None and self.clock() - state.seen.at <= FRESH

    def _mates(self, state: State) -> Iterator[State]:
        for other in self.states.values():
            if other is not state and other.group.place == state.group.place:
                yield other

    def _blocked(self, state: State, now: float) -> Refusal | None:
        """A mate that is in use, starts, or was asked for before."""
        name = state.group.name
        for mate in self._mates(state):
            other, idle = mate.group.name, mate.group.idle_seconds
            if mate.wanted is not None and (state.wanted is None or mate.wanted < state.wanted):
                return refusal.in_turn(name, other, self.rest(other) + idle, "was asked for")
            if mate.seen is None or not self.fresh(mate):
                return refusal.blind(name, self.problem)
            if not mate.up or self._may_sleep(mate, now, asked=True):
                continue
            if mate.ready:
                used = f"was used {refusal.span(now - mate.used)} ago"
                doing = "is in use" if mate.use != "idle" else used
                return refusal.in_turn(name, other, max(SOON, idle - (now - mate.used)), doing)
            if mate.failure:
                doing, rest = "failed to start", idle - (now - max(mate.failed, mate.used))
                return refusal.in_turn(name, other, max(SOON, rest), doing)
            return refusal.in_turn(name, other, self.rest(other) + idle, "starts")
        return None

    # --- what was done ----------------------------------------------------------------------------------------

    def sleeps(self, name: str) -> None:
        """Said before the cluster is told: who comes from now on waits for its end."""
        self.states[name].ending = True

    def slept(self, name: str) -> None:
        state = self.states[name]
        state.counts["slept"] += 1
        if state.seen:
            state.seen = state.seen._replace(up=0, pods=max(1, state.seen.pods), ready=False)

    def woken(self, name: str) -> None:
        state = self.states[name]
        state.begun = self.clock()
        if state.seen:
            state.seen = state.seen._replace(up=len(state.group.sets), ready=False)

    def undone(self, name: str, why: str) -> None:
        """The cluster did not take it: nobody waits for what nobody does."""
        state = self.states[name]
        state.ending = False
        if state.wanted is not None:
            self._fail(state, why, self.clock(), hold=SOON)
        state.seen = None if state.seen is None else state.seen._replace(at=float("-inf"))


def _order(state: State) -> tuple[float, str]:
    """Who was asked for first comes first."""
    return (float("inf") if state.wanted is None else state.wanted, state.group.name)
