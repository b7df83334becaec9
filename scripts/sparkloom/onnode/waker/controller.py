"""The one loop that looks at the cluster and changes it: a step after the other, so no look is older than a change.

Who reads or changes what is known of the groups holds `changed`; the cluster is asked without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sparkloom.onnode import stopping
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.waker import use
from sparkloom.onnode.waker.cluster import Cluster, every, found
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.lease import Lease
from sparkloom.onnode.waker.state import Act, Group, GroupsFile, Seen, Use

EVERY, MOVING = 4.0, 2.0  # seconds between looks; while something starts or goes


Look = tuple[dict[str, Seen], dict[str, Use], list[str]]  # the last: what could not be seen


class Controller:
    def __init__(
        self, groups: Groups, file: GroupsFile, cluster: Cluster, lease: Lease, say: Callable[[str], None]
    ) -> None:
        self.groups, self.file, self.cluster, self.lease, self.say = groups, file, cluster, lease, say
        self.changed = threading.Condition()  # for who waits
        self.asked = threading.Event()  # for this loop
        self.looked = float("-inf")  # when the last whole look was
        self.round_at = groups.clock()  # when the loop last came round
        self._counters = use.Counters()
        self._said = ""

    def run(self) -> None:
        """Until it is told to leave; the Lease is given up then."""
        try:
            while not self.groups.leaving:
                try:
                    self._round()
                except Exception as error:  # what nobody thought of must not end the loop that all wait for
                    self._note(f"a look ended by {type(error).__name__}: {error}")
                self.round_at = self.groups.clock()
                self._rest()
        finally:
            self.lease.release()

    def leave(self) -> None:
        """Nothing is changed from now on; who waits hears it."""
        with self.changed:
            self.groups.leaving = True
            self.changed.notify_all()
        self.asked.set()

    def _rest(self) -> None:
        with self.changed:
            moves = any(state.phase in ("waking", "going") or state.wanted for state in self.groups.states.values())
        self.asked.wait(MOVING if moves or not self.lease.mine else EVERY)
        self.asked.clear()

    def _round(self) -> None:
        self._reread()
        problem = self._look()
        if not self.groups.leaving and (why := self._renewed()):
            problem = problem or why
        with self.changed:
            self.groups.settle()
            self.changed.notify_all()
            acts = self.groups.acts()
        for act in acts:
            if self.lease.mine and not self.groups.leaving:
                problem = self._do(act) or problem
        with self.changed:
            self.groups.blind(problem)
            self.changed.notify_all()
        self._note(problem)

    def _reread(self) -> None:
        try:
            if (listed := self.file.new()) is not None:
                with self.changed:
                    self.groups.replace(listed)
                self.say(f"groups on demand: {', '.join(group.name for group in listed) or 'none'}")
        except (OSError, ValueError) as error:  # what was read before goes on
            self._note(f"{self.file.path} cannot be read: {error}")

    def _renewed(self) -> str:
        try:
            self.lease.renew()
        except Unreached as error:
            return str(error)
        return "" if self.lease.mine else "another waker still decides"

    def _look(self) -> str:
        listed = tuple(state.group for state in self.groups.states.values())
        began = self.groups.clock()
        try:
            found, uses, problems = self.look(listed, began)
        except Unreached as error:
            answering = self._answering(listed)
            with self.changed:
                for name in answering:
                    self.groups.answers(name)
            return str(error)
        with self.changed:
            for name, seen in found.items():
                self.groups.looked(name, seen, uses.get(name, "used"))
            self.looked = began
        return "; ".join(problems)

    def look(self, listed: tuple[Group, ...], at: float) -> Look:
        """`Unreached` where the cluster's API says nothing."""
        sets, stops, pods = self.cluster.objects()
        problems, seen = [], dict[str, Seen]()
        for group in listed:
            try:
                seen[group.name] = found(group, sets, stops, pods, at)
            except ValueError as error:
                problems.append(f"{group.name}: {error}")
        up = [group for group in listed if group.name in seen and seen[group.name].up]
        said = every(lambda one: self._said_of(one, seen[one.name].head), up)
        counts = {pod: None if page is None else use.read(page) for pod, page in self.cluster.counted(pods).items()}
        for group, (ready, down) in zip(up, said, strict=True):
            routed = use.routed(group, counts)
            seen[group.name] = seen[group.name]._replace(ready=ready, down=down, routed=routed)
        serving = [group for group in up if seen[group.name].ready]
        return seen, self._uses(listed, serving, counts), problems

    def _said_of(self, group: Group, head: str) -> tuple[bool, str]:
        if self.cluster.ready(group):
            return True, ""
        return False, self.cluster.down(head) if head else ""

    def _uses(self, listed: tuple[Group, ...], ready: list[Group], counts: use.Counts) -> dict[str, Use]:
        """Of a group that is not ready only the router knows something."""
        uses = self._counters.evidence(listed, counts)
        for group, count in zip(ready, every(self.cluster.connections, ready), strict=True):
            uses[group.name] = use.either(uses[group.name], count)
        return uses

    def _answering(self, listed: tuple[Group, ...]) -> list[str]:
        """Without the API: who answers all the same."""
        return [group.name for group, yes in zip(listed, every(self.cluster.ready, list(listed)), strict=True) if yes]

    def _do(self, act: Act) -> str:
        """After one look more: what is asked meanwhile counts, and what cannot be seen is left."""
        before = self.looked
        problem = self._look()
        if self.looked == before:
            return problem
        with self.changed:
            self.groups.settle()
            wakes = act.verb == "wake" and self.groups.may_wake(act.name)
            sleeps = act.verb == "sleep" and self.groups.may_sleep(act.name)
            if sleeps:
                self.groups.sleeps(act.name)
        return self._scaled(act.name, int(wakes)) if wakes or sleeps else ""

    def _scaled(self, name: str, replicas: int) -> str:
        group = self.groups.states[name].group
        self.say(f"{name} {'starts' if replicas else 'is put to sleep'}: {', '.join(group.sets)} to {replicas}")
        try:
            for one in group.sets:
                if not self.lease.mine:
                    raise Unreached("another waker may decide now")
                stopping.scale(self.cluster.reached, self.cluster.namespace, one, replicas)
        except Unreached as error:
            with self.changed:
                self.groups.undone(name, str(error))
            return str(error)
        with self.changed:
            self.groups.woken(name) if replicas else self.groups.slept(name)
        return ""

    def _note(self, problem: str) -> None:
        if problem != self._said:
            self._said = problem
            self.say(problem or "all can be seen and done again")
