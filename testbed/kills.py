"""Kills ranks of the model that serves on the rack, and measures until the whole group serves a token again.

    python -m testbed.kills                      each kind three times, one rank after the other; prints a table
    python -m testbed.kills --rounds 1 engine    one kind, once

A round is good when every pod is Ready again in a later epoch and rank 0 streams a token.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sparkloom import kube, smoke
from testbed.rack import names
from testbed.rack.shell import RackError, run

NAMESPACE = "sparkloom"
LABELS = {"app.kubernetes.io/component": "engine"}
LIMIT = 420.0
# Run on a node, which sees its pods' processes: process 1 of the rank's container.
END_CONTAINER = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
    except OSError:
        continue
    if words[1:3] == [b"/sparkloom/rank", b"--"]:
        os.kill(int(pid), 9)
"""


@dataclass
class Round:
    kind: str
    rank: int
    seconds: float
    good: bool
    said: str = ""


@dataclass
class Group:
    cluster: kube.Cluster
    rounds: list[Round] = field(default_factory=list)

    @classmethod
    def of(cls) -> Group:
        return cls(kube.Cluster.of(str(names.KUBECONFIG), NAMESPACE))

    def pods(self) -> list[Any]:
        return self.cluster.pods(LABELS)

    def status(self, pod: str) -> dict[str, Any]:
        done = kubectl("exec", pod, "--", "python3", "/sparkloom/rank", "status", check=False)
        try:
            return dict(json.loads(done))
        except (ValueError, TypeError):
            return {}

    def epoch(self) -> int:
        return max(int(self.status(pod.metadata.name).get("epoch") or 0) for pod in self.pods())

    def serves(self, later_than: int) -> bool:
        try:
            pods = self.pods()
            ready = [all(s.ready for s in pod.status.container_statuses or []) for pod in pods]
            states = [self.status(pod.metadata.name) for pod in pods] if all(ready) else []
        except Exception:  # the API server of a node that was stopped
            return False
        return bool(states) and all(s.get("serving") and s["epoch"] > later_than for s in states)

    def token(self) -> str:
        first = next(pod for pod in self.pods() if pod.metadata.name.endswith("rank0-0"))
        port = next(p.container_port for p in first.spec.containers[0].ports)
        answer = smoke.ask(
            lambda: self.cluster.connect(first.metadata.name, port, 60), lambda text: None, max_tokens=16
        )
        return answer.figures()


def kubectl(*words: str, check: bool = True) -> str:
    tool = names.STATE / "bin/kubectl"
    return run([tool, "--kubeconfig", names.KUBECONFIG, "-n", NAMESPACE, *words], check=check, timeout=120).stdout


def engine(group: Group, pod: Any, node: str) -> None:
    pid = group.status(pod.metadata.name)["engine"]
    kubectl("exec", pod.metadata.name, "--", "python3", "-c", f"import os; os.kill({pid}, 9)")


def container(group: Group, pod: Any, node: str) -> None:
    run(["docker", "exec", "-i", node, "python3", "-"], stdin=END_CONTAINER)


def pod(group: Group, pod: Any, node: str) -> None:
    kubectl("delete", "pod", pod.metadata.name, "--wait=false")


def node(group: Group, pod: Any, node: str) -> None:
    name = next(name for name, known in names.NODES.items() if known == node)
    run([sys.executable, "-m", "testbed.rack", "node", name, "restart"], cwd=names.REPO)


KINDS: dict[str, Callable[[Group, Any, str], None]] = {
    "engine": engine, "container": container, "pod": pod, "node": node,
}  # fmt: skip


def once(group: Group, kind: str, rank: int) -> Round:
    victim = group.pods()[rank]
    before, begun = group.epoch(), time.monotonic()
    KINDS[kind](group, victim, victim.spec.node_name)
    while not group.serves(before):
        if time.monotonic() - begun > LIMIT:
            return Round(kind, rank, LIMIT, False, "not back")
        time.sleep(1)
    seconds = time.monotonic() - begun
    try:
        return Round(kind, rank, seconds, True, group.token())
    except smoke.NoAnswer as problem:
        return Round(kind, rank, seconds, False, str(problem))


def table(rounds: list[Round]) -> str:
    lines = ["| kind | rounds | back | seconds until all are Ready again: least, middle, most |", "|--|--|--|--|"]
    for kind in dict.fromkeys(one.kind for one in rounds):
        mine = [one for one in rounds if one.kind == kind]
        times = [one.seconds for one in mine]
        spread = f"{min(times):.0f}, {statistics.median(times):.0f}, {max(times):.0f}"
        lines.append(f"| {kind} | {len(mine)} | {sum(one.good for one in mine)} | {spread} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.kills", description=__doc__.split("\n")[0])
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(KINDS)}; all of them unless named")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"no kind {unknown[0]}; known: {', '.join(KINDS)}")
    group = Group.of()
    if not group.serves(0):
        raise SystemExit("nothing serves on the rack; run site.yml first")
    rounds: list[Round] = []
    for kind in options.kinds or list(KINDS):
        for number in range(options.rounds):
            ranks = len(group.pods())
            # the control plane's node is rank 0's: it comes last among those whose end is waited for
            one = once(group, kind, (number + 1) % ranks if kind == "node" else number % ranks)
            rounds.append(one)
            print(f"{kind} of rank {one.rank}: {one.seconds:.0f} s, {one.said}", flush=True)
    print(table(rounds))
    return 0 if all(one.good for one in rounds) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RackError as problem:
        sys.exit(f"error: {problem}")
