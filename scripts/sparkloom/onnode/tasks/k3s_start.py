"""Start or restart K3s and wait for the node to be Ready.

Restarts the unit, then waits for a lease that the kubelet renewed since, for the condition Ready, and on a server for
the API. Gives up early when the unit ends again and again, or when K3s says something again and again that it never
gets over by itself. Then the cause is named with its cure, and what K3s said last. A node that runs as planned and is
only not Ready has half a minute to become it before its unit is restarted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from sparkloom.onnode.host.k3s_node import ALIVE, Node, last_words, named, run
from sparkloom.onnode.task import Task


class Cause(TypedDict):
    id: str  # What the cause is called.
    pattern: str  # A line that says so.
    why: str  # What is behind it.
    fix: str  # What a person does about it; NAME stands for the node.
    forever: bool  # K3s does not get over it by itself.


# Times that the unit may end by itself, or say what it never gets over, before it is given up: a machine that joins
# while its server still starts may be refused once.
ENDS = 3
BY_ITSELF = 30.0  # seconds for a node that is only not Ready: its server may just have come back


class Start:
    def __init__(self, causes: Sequence[Cause], seconds: int, node: Node) -> None:
        self.causes, self.seconds, self.node = causes, seconds, node

    def hopeless(self, since: float) -> bool:
        said = named(self.node.log(since), self.causes)
        return self.node.ended() >= ENDS or any(cause["forever"] and times >= ENDS for cause, times, _ in said)

    def comes_by_itself(self) -> bool:
        began = time.time()
        while self.node.waits_now():
            if time.time() > began + BY_ITSELF or self.hopeless(began - ALIVE):
                return False
            time.sleep(1)
        return True

    def restart(self) -> tuple[str, float]:
        """Nothing when the node is Ready, else what is still waited for; and since when."""
        for words in (["daemon-reload"], ["enable", self.node.unit], ["reset-failed", self.node.unit]):
            run("systemctl", *words)
        since = time.time()
        asked = run("systemctl", "restart", "--no-block", self.node.unit)
        waiting = asked.stderr.strip() or "the unit to start"
        while asked.returncode == 0:
            waiting = self.node.waits(since)
            # A node that is Ready is well, whatever somebody else's requests made it say.
            if not waiting or time.time() > since + self.seconds or self.hopeless(since):
                break
            time.sleep(1)
        return waiting, since

    def refusal(self, waiting: str, since: float) -> str:
        lines = self.node.log(since)
        told = [
            f"{cause['why']}. To do: {cause['fix'].replace('NAME', self.node.name)}"
            for cause, *_ in named(lines, self.causes)[:2]
        ]
        words = "\n".join(f"  | {line[:400]}" for line in last_words(lines, self.causes))
        late = f"after {time.time() - since:.0f} s still waiting for {waiting}"
        head = f"{self.node.unit}: {late}; it ended {self.node.ended()} times"
        more = f"`journalctl -u {self.node.service}` has all of it"
        may = f"it may take k3s_ready_seconds ({self.seconds})"
        return "\n".join([head, *told, f"It said:\n{words}", f"{more}; {may}"])


def main(
    task: Task,
    service: str,  # k3s or k3s-agent
    node: str,  # the node's name in the cluster
    binary: Path,  # K3s itself; its kubectl asks
    kubeconfig: Path,  # the kubelet's own access
    reasons: Sequence[str],  # why; shown with --diff
    causes: Sequence[Cause],  # what K3s says when it cannot go on
    as_planned: bool = False,  # it runs, with all that it should be started with
    seconds: int = 300,  # how long it may take
) -> None:
    why = "".join(f"{reason}\n" for reason in reasons)
    diff = {"before": "", "after": why, "after_header": f"why {service} is started"}
    if task.check_mode:
        task.exit_json(changed=True, diff=diff)
    start = Start(causes, seconds, Node(service, node, str(binary), str(kubeconfig)))
    if as_planned and start.comes_by_itself():
        task.exit_json()
    waiting, since = start.restart()
    if waiting:
        task.fail_json(msg=start.refusal(waiting, since))
    task.exit_json(changed=True, seconds=round(time.time() - since, 1), diff=diff)
