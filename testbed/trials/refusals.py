"""Breaks what a group of ranks needs, one thing after the other, and measures how long it takes until each is named.

    python -m testbed refusals      prints a table; ends with the group serving again

The model that serves must be one of four ranks over both rails. Several ranks meet a fault at once, and some a second
one behind the first. Time runs from the start of the rank's container, or from the fault (where one stood before it,
from its end), to the line in the rank's log. Meanwhile no rank may be Ready and no token may come.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sparkloom.onnode import smoke
from testbed.base import names
from testbed.base.shell import RackError
from testbed.trials.breakage import broken, sockets_only, without_address, wrong_weights
from testbed.trials.kills import ServedGroup, kubectl

LIMIT = 120.0
SETS = ("statefulset", "-l", "app.kubernetes.io/component=engine")
NAMED = re.compile(r"^(\S+) \[sparkloom rank \d+ epoch \d+\] (?:refused|missing|failed|down): (.*)$")


@dataclass(frozen=True)
class Seen:
    """One fault, as its rank named it."""

    fault: str
    rank: int
    seconds: float
    line: str
    served: str = ""  # what was Ready or answered meanwhile: nothing
    named: bool = True


@dataclass(frozen=True)
class Expected:
    fault: str
    rank: int
    words: str  # a pattern for the line that names it


AT_START = (
    Expected("no RDMA device", 1, r"RDMA device \S+ is not there"),
    Expected("one rail down", 2, "net1 has no carrier"),
    Expected("no GID", 3, "has no RoCE v2 GID of"),
)
BEHIND = (
    Expected("wrong weights", 2, "was changed after it was verified"),
    Expected("no address", 3, "net2 has no IPv4 address"),
)
PEER = Expected("peer missing", 0, r"^rank 3 on \S+ has not come$")
MTU = Expected("MTU 1500", 0, r"small frames pass, frames of \d+ bytes do not")
SOCKET = Expected("Socket transport", 0, "nccl-network-missing")
BUDGET = Expected("budget", 0, r"stays down: failed \d+ times in .*, the last time: ")
TABLE = (*AT_START, *BEHIND, PEER, MTU, SOCKET, BUDGET)


# --- the group -----------------------------------------------------------------------------------------------------


class Trial:
    def __init__(self, group: ServedGroup, say: Callable[[str], None]) -> None:
        self.group, self.say = group, say
        self.seen: list[Seen] = []
        self.model = self._model()

    def _model(self) -> str:
        plan = json.loads(kubectl("exec", self.pod(0), "--", "cat", "/sparkloom/plan.json"))
        model: str = plan["weights"][0]["id"]
        return model

    def pod(self, rank: int) -> str:
        return next(name for name in self._names() if name.endswith(f"rank{rank}-0"))

    def _names(self) -> list[str]:
        return [str(pod.metadata.name) for pod in self.group.pods()]

    def scale(self, replicas: int, *sets: str) -> None:
        kubectl("scale", *(sets or SETS), f"--replicas={replicas}")

    def set_of(self, rank: int) -> str:
        sets = [item["metadata"]["name"] for item in json.loads(kubectl("get", *SETS, "-o", "json"))["items"]]
        return "statefulset/" + next(name for name in sets if name.endswith(f"rank{rank}"))

    def gone(self) -> None:
        limit = time.monotonic() + LIMIT
        while self.group.pods():
            if time.monotonic() > limit:
                raise RackError("ranks that were told to go are still there")
            time.sleep(0.5)

    def expect(self, wanted: Iterable[Expected], since: float | None = None) -> None:
        """Waits until each is named; what serves meanwhile is noted."""
        left, limit, served = list(wanted), time.monotonic() + LIMIT, ""
        while left and time.monotonic() < limit:
            served = served or self._serves(since)
            for expected in list(left):
                if named := self._named(expected, since):
                    self.seen.append(Seen(expected.fault, expected.rank, *named, served))
                    self.say(row(self.seen[-1]))
                    left.remove(expected)
            time.sleep(1)
        for expected in left:
            words = "not named: " + self.group.described()
            self.seen.append(Seen(expected.fault, expected.rank, LIMIT, words, served, named=False))
            self.say(row(self.seen[-1]))

    def _named(self, expected: Expected, since: float | None) -> tuple[float, str] | None:
        pod = next((p for p in self.group.pods() if p.metadata.name.endswith(f"rank{expected.rank}-0")), None)
        begun = since or (pod and started(pod))
        if not pod or not begun:
            return None
        for line in kubectl("logs", "--timestamps", pod.metadata.name, check=False).splitlines():
            match = NAMED.match(line)
            if match and re.search(expected.words, match[2]) and (at := moment(match[1])) >= begun:
                return at - begun, match[2]
        return None

    def _serves(self, since: float | None) -> str:
        """Ready pods, or a token; a rank that served until the fault has a probe's time to be found out."""
        if since and time.time() - since < 15:
            return ""
        ready = [
            pod.metadata.name for pod in self.group.pods() if any(s.ready for s in pod.status.container_statuses or [])
        ]
        try:
            return f"Ready: {', '.join(ready)}" if ready else f"a token: {self.group.token()}"
        except (smoke.NoAnswer, StopIteration, OSError, TypeError):
            return ""
        except Exception as problem:  # kubernetes' own, of a pod that is not there yet
            return "" if "ApiException" in type(problem).__name__ else str(problem)

    def serves_again(self) -> str:
        limit = time.monotonic() + 2 * LIMIT
        while not self.group.serves(0):
            if time.monotonic() > limit:
                raise RackError(f"the group does not serve again: {self.group.described()}")
            time.sleep(1)
        return self.group.token()


def started(pod: Any) -> float:
    """When its container did; 0 while none runs."""
    running = [status.state.running for status in pod.status.container_statuses or [] if status.state.running]
    return float(running[0].started_at.timestamp()) if running else 0.0


def moment(text: str) -> float:
    """Kubernetes writes nanoseconds, Python reads microseconds."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).replace("Z", "+00:00")).timestamp()


def row(seen: Seen) -> str:
    but = f" BUT meanwhile {seen.served}" if seen.served else ""
    return f"{seen.fault}: rank {seen.rank} after {seen.seconds:.0f} s: {seen.line}{but}"


# --- the story -----------------------------------------------------------------------------------------------------


def perform(
    group: ServedGroup, say: Callable[[str], None] = print, while_down: Callable[[], None] = lambda: None
) -> list[Seen]:
    trial = Trial(group, say)
    last = trial.set_of(3)
    trial.scale(0)
    trial.gone()
    with wrong_weights("spark3", trial.model):
        with (
            broken("spark2", "no-rdma-device", "a"),
            broken("spark3", "link-down", "a"),
            broken("spark4", "no-gid", "a"),
        ):
            trial.scale(1)
            trial.expect(AT_START)
            without_address("spark4", "net2")
            begun = time.time()
        trial.expect(BEHIND, since=begun)
    begun = time.time()
    kubectl("delete", "pod", trial.pod(1), "--wait=false")  # it was made without its RDMA device's file
    trial.scale(0, last)
    trial.expect([PEER], since=begun)
    with broken("spark3", "mtu1500", "a"):
        begun = time.time()
        trial.scale(1, last)
        trial.expect([MTU], since=begun)
    say(f"mended, and the group starts by itself: {trial.serves_again()}")
    with sockets_only():
        begun = time.time()
        pid = group.status(group.head().metadata.name)["engine"]
        kubectl("exec", group.head().metadata.name, "--", "python3", "-c", f"import os; os.kill({pid}, 9)")
        trial.expect([SOCKET, BUDGET], since=begun)
        while_down()
    kubectl("delete", "pod", group.head().metadata.name, "--wait=false")
    time.sleep(2)
    say(f"rank 0's pod deleted, and the group starts: {trial.serves_again()}")
    trial.scale(0)
    trial.gone()
    trial.scale(1)
    say(f"all made anew, which forgets the failures: {trial.serves_again()}")
    return trial.seen


def table(seen: list[Seen]) -> str:
    lines = ["| fault | named by | after, s | its words |", "|--|--|--|--|"]
    return "\n".join([*lines, *(f"| {s.fault} | rank {s.rank} | {s.seconds:.0f} | {s.line} |" for s in seen)])


def main() -> int:
    argparse.ArgumentParser(prog="python -m testbed refusals", description=__doc__.split("\n")[0]).parse_args()
    group = ServedGroup.of()
    if not group.serves(0) or len(group.pods()) != len(names.NODES):
        raise SystemExit("no group of four ranks serves on the rack; run site.yml first")
    seen = perform(group)
    print(table(seen))
    return 0 if len(seen) == len(TABLE) and not any(s.served or not s.named for s in seen) else 1
