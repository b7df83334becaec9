"""Kills ranks of the model that serves on the rack, and measures until the whole group serves a token again.

    python -m testbed kills                      each kind five times, one rank after the other; prints a table
    python -m testbed kills --rounds 1 engine    one kind, once
    python -m testbed kills --handful 4 --seed 7 four kills by chance, each kind once before one comes again

A round is good when every pod is Ready again in a later epoch and rank 0 streams a token at that moment. Until then
rank 0 is watched: for how long did Kubernetes still call it Ready? Its probe comes every 5 s.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sparkloom.onnode import smoke
from sparkloom.render.manifests.names import PROFILE
from sparkloom.site.client import Client
from testbed.base import names
from testbed.base.shell import run
from testbed.trials.breakage import at_ranks

NAMESPACE = "sparkloom"
LABELS = {"app.kubernetes.io/component": "engine"}
LIMIT = 240.0


@dataclass
class Round:
    kind: str
    rank: int
    seconds: float
    good: bool
    note: str = ""
    ready: float = 0.0  # seconds after the kill for which rank 0 was still called Ready


@dataclass
class ServedGroup:
    """`name`: one of several groups; empty where one profile is served."""

    cluster: Client
    name: str = ""

    @classmethod
    def of(cls, name: str = "") -> ServedGroup:
        return cls(Client.at(str(names.KUBECONFIG), NAMESPACE), name)

    def pods(self) -> list[Any]:
        return self.cluster.pods({**LABELS, **({PROFILE: self.name} if self.name else {})})

    def status(self, pod: str) -> dict[str, Any]:
        done = kubectl("exec", pod, "--", "python3", "/sparkloom/rank", "status", check=False)
        try:
            return dict(json.loads(done))
        except (ValueError, TypeError):
            return {}

    def epoch(self) -> int:
        return max(int(self.status(pod.metadata.name).get("epoch") or 0) for pod in self.pods())

    def described(self) -> str:
        """Every rank's own word, for a round that ends badly."""
        states = {pod.metadata.name: self.status(pod.metadata.name) for pod in self.pods()}
        words = (f"{name} {s.get('phase')}: {s.get('cause') or s.get('text')}" for name, s in states.items())
        return "; ".join(words)

    def serves(self, later_than: int) -> bool:
        try:
            pods = self.pods()
            ready = [all(s.ready for s in pod.status.container_statuses or []) for pod in pods]
            states = [self.status(pod.metadata.name) for pod in pods] if all(ready) else []
        except Exception:  # the API server of a node that was stopped
            return False
        return bool(states) and all(s.get("serving") and s["epoch"] > later_than for s in states)

    def head(self) -> Any:
        return next(pod for pod in self.pods() if pod.metadata.name.endswith("rank0-0"))

    def head_ready(self) -> bool:
        try:
            conditions = self.head().status.conditions or []
        except Exception:  # neither is there
            return False
        return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)

    def token(self) -> str:
        first = self.head()
        port = next(p.container_port for p in first.spec.containers[0].ports)
        secrets = {v.name: v.secret.secret_name for v in first.spec.volumes if v.secret}
        key = (self.cluster.secret(secrets["key"]) or {}).get("key")
        answer = smoke.ask(
            lambda: self.cluster.connect(first.metadata.name, port, 60), lambda text: None, max_tokens=16, key=key
        )
        return answer.figures()


def kubectl(*words: str, check: bool = True) -> str:
    tool = names.STATE / "bin/kubectl"
    return run([tool, "--kubeconfig", names.KUBECONFIG, "-n", NAMESPACE, *words], check=check, timeout=120).stdout


def engine(group: ServedGroup, pod: Any, node: str) -> None:
    pid = group.status(pod.metadata.name)["engine"]
    kubectl("exec", pod.metadata.name, "--", "python3", "-c", f"import os; os.kill({pid}, 9)")


def container(group: ServedGroup, pod: Any, node: str) -> None:
    at_ranks(node, "os.kill(int(pid), 9)")


def pod(group: ServedGroup, pod: Any, node: str) -> None:
    kubectl("delete", "pod", pod.metadata.name, "--wait=false")


def node(group: ServedGroup, pod: Any, node: str) -> None:
    name = next(name for name, known in names.NODES.items() if known == node)
    run([sys.executable, "-m", "testbed", "rack", "node", name, "restart"], cwd=names.REPO)


KINDS: dict[str, Callable[[ServedGroup, Any, str], None]] = {
    "engine": engine, "container": container, "pod": pod, "node": node,
}  # fmt: skip


def once(group: ServedGroup, kind: str, rank: int) -> Round:
    victim = group.pods()[rank]
    before, begun, ready = group.epoch(), time.monotonic(), 0.0
    KINDS[kind](group, victim, victim.spec.node_name)
    unready = False
    while not group.serves(before):
        if time.monotonic() - begun > LIMIT:
            return Round(kind, rank, LIMIT, False, "not back: " + group.described(), ready)
        unready = unready or not group.head_ready()
        ready = ready if unready else time.monotonic() - begun
        time.sleep(1)
    seconds = time.monotonic() - begun
    try:
        return Round(kind, rank, seconds, True, group.token(), ready)
    except smoke.NoAnswer as problem:
        return Round(kind, rank, seconds, False, str(problem), ready)


def in_turn(kinds: Iterable[str], rounds: int, ranks: int) -> list[tuple[str, int]]:
    """Every kind so many times, one rank after the other; a node's stop begins with rank 1, not with the API server."""
    return [(kind, (number + (kind == "node")) % ranks) for kind in kinds for number in range(rounds)]


def by_chance(seed: int, count: int, ranks: int) -> list[tuple[str, int]]:
    chance, kinds = random.Random(seed), list(KINDS)
    chance.shuffle(kinds)
    return [(kinds[number % len(kinds)], chance.randrange(ranks)) for number in range(count)]


def table(rounds: list[Round]) -> str:
    until = "seconds until all are Ready again: least, middle, most"
    lines = [f"| kind | rounds | back | {until} | rank 0 still called Ready, most |", "|--|--|--|--|--|"]
    for kind in dict.fromkeys(done.kind for done in rounds):
        mine = [done for done in rounds if done.kind == kind]
        times = [done.seconds for done in mine]
        spread = f"{min(times):.0f}, {statistics.median(times):.0f}, {max(times):.0f}"
        still = max(done.ready for done in mine)
        lines.append(f"| {kind} | {len(mine)} | {sum(done.good for done in mine)} | {spread} | {still:.0f} |")
    return "\n".join(lines)


def perform(group: ServedGroup, planned: list[tuple[str, int]]) -> list[Round]:
    rounds: list[Round] = []
    for kind, rank in planned:
        rounds.append(done := once(group, kind, rank))
        print(f"{kind} of rank {done.rank}: {done.seconds:.0f} s, {done.note}", flush=True)
        if not done.good:  # what is not back cannot be killed again
            break
    return rounds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed kills", description=__doc__.split("\n")[0])
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(KINDS)}; all of them unless named")
    parser.add_argument("--rounds", type=int, default=5, help="of each kind (default: 5)")
    parser.add_argument("--handful", type=int, default=0, help="so many kills by chance instead")
    parser.add_argument("--seed", type=int, default=0, help="of that chance; the same seed kills the same again")
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"no kind {unknown[0]}; known: {', '.join(KINDS)}")
    group = ServedGroup.of()
    if not group.serves(0):
        raise SystemExit("nothing serves on the rack; run site.yml first")
    ranks = len(group.pods())
    chosen = in_turn(options.kinds or KINDS, options.rounds, ranks)
    rounds = perform(group, by_chance(options.seed, options.handful, ranks) if options.handful else chosen)
    print(table(rounds))
    return 0 if all(done.good for done in rounds) else 1
