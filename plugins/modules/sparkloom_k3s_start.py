#!/usr/bin/python
from __future__ import annotations

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_k3s_node import ALIVE, Node, last_words, named, run

DOCUMENTATION = r"""
module: sparkloom_k3s_start
short_description: Start or restart K3s and wait for the node to be Ready
description:
  - Restarts the unit, then waits for a lease that the kubelet renewed since, for the condition Ready, and on a server
    for the API.
  - Gives up early when the unit ends again and again, or when K3s says something again and again that it never gets
    over by itself. Then the cause is named with its cure, and what K3s said last.
  - A node that runs as planned and is only not Ready has half a minute to become it before its unit is restarted.
options:
  service: {type: str, required: true, description: [k3s or k3s-agent.]}
  node: {type: str, required: true, description: [The node's name in the cluster.]}
  binary: {type: path, required: true, description: [K3s itself; its kubectl asks.]}
  kubeconfig: {type: path, required: true, description: [The kubelet's own access.]}
  reasons: {type: list, elements: str, required: true, description: [Why; shown with --diff.]}
  as_planned: {type: bool, default: false, description: ["It runs, with all that it should be started with."]}
  seconds: {type: int, default: 300, description: [How long it may take.]}
  causes:
    type: list
    elements: dict
    required: true
    description: [What K3s says when it cannot go on.]
    suboptions:
      id: {type: str, required: true, description: [What the cause is called.]}
      pattern: {type: str, required: true, description: [A line that says so.]}
      why: {type: str, required: true, description: [What is behind it.]}
      fix: {type: str, required: true, description: [What a person does about it; NAME stands for the node.]}
      forever: {type: bool, required: true, description: [K3s does not get over it by itself.]}
"""

CAUSE = {
    **{key: {"type": "str", "required": True} for key in ("id", "pattern", "why", "fix")},
    "forever": {"type": "bool", "required": True},
}
# Times that the unit may end by itself, or say what it never gets over, before it is given up: a machine that joins
# while its server still starts may be refused once.
ENDS = 3
BY_ITSELF = 30.0  # seconds for a node that is only not Ready: its server may just have come back


class Start:
    def __init__(self, args: dict) -> None:
        self.causes, self.seconds = args["causes"], args["seconds"]
        self.node = Node(args["service"], args["node"], args["binary"], args["kubeconfig"])

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

    def restart(self) -> tuple:
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
        return "\n".join(
            [
                f"{self.node.unit}: after {time.time() - since:.0f} s still waiting for {waiting}; "
                f"it ended {self.node.ended()} times",
                *told,
                f"It said:\n{words}",
                f"`journalctl -u {self.node.service}` has all of it; it may take k3s_ready_seconds ({self.seconds})",
            ]
        )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "node": {"type": "str", "required": True},
            "binary": {"type": "path", "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "reasons": {"type": "list", "elements": "str", "required": True},
            "as_planned": {"type": "bool", "default": False},
            "seconds": {"type": "int", "default": 300},
            "causes": {"type": "list", "elements": "dict", "required": True, "options": CAUSE},
        },
        supports_check_mode=True,
    )
    args = module.params
    why = "".join(f"{reason}\n" for reason in args["reasons"])
    diff = {"before": "", "after": why, "after_header": f"why {args['service']} is started"}
    if module.check_mode:
        module.exit_json(changed=True, diff=diff)
    start = Start(args)
    if args["as_planned"] and start.comes_by_itself():
        module.exit_json(changed=False)
    waiting, since = start.restart()
    if waiting:
        module.fail_json(msg=start.refusal(waiting, since))
    module.exit_json(changed=True, seconds=round(time.time() - since, 1), diff=diff)


if __name__ == "__main__":
    main()
