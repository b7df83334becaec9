#!/usr/bin/python
from __future__ import annotations

import calendar
import json
import re
import time
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import completed

DOCUMENTATION = r"""
module: sparkloom_k3s_start
short_description: Start or restart K3s and wait for the node to be Ready
description:
  - Restarts the unit, then waits for a lease that the kubelet renewed since, for the condition Ready, and on a server
    for the API.
  - Gives up early when the unit ends again and again, with what it said last.
options:
  service: {type: str, required: true, description: [k3s or k3s-agent.]}
  node: {type: str, required: true, description: [The node's name in the cluster.]}
  binary: {type: path, required: true, description: [K3s itself; its kubectl asks.]}
  kubeconfig: {type: path, required: true, description: [The kubelet's own access.]}
  reasons: {type: list, elements: str, required: true, description: [Why; shown with --diff.]}
  seconds: {type: int, default: 300, description: [How long it may take.]}
"""

run = partial(completed, timeout=30)
# What an agent says again and again, for ever, when it is not let in.
HOPELESS = re.compile(r"CA hash does not match|401 Unauthorized|not authorized|invalid token")
ENDS = 3  # times that the unit may end by itself before it is given up
TOKENS = re.compile(r"K10[0-9a-f]{8,}::\S+|\b[0-9a-f]{64}\b")


class Start:
    def __init__(self, args: dict) -> None:
        self.args = args
        self.unit = f"{args['service']}.service"
        self.kubectl = (args["binary"], "kubectl", f"--kubeconfig={args['kubeconfig']}")

    def get(self, *words: str) -> dict:
        done = run(*self.kubectl, "get", *words, "-o", "json")
        try:
            return json.loads(done.stdout) if done.returncode == 0 else {}
        except ValueError:
            return {}

    def ready(self, since: float) -> str:
        """Nothing when all is well, else what is waited for."""
        lease = self.get("lease", "-n", "kube-node-lease", self.args["node"])
        renewed = lease.get("spec", {}).get("renewTime", "")
        if not renewed or moment(renewed) < since:
            return "the kubelet's first sign of life"
        conditions = self.get("node", self.args["node"]).get("status", {}).get("conditions", [])
        state = next((c for c in conditions if c["type"] == "Ready"), {})
        if state.get("status") != "True":
            return f"the node to be Ready ({state.get('message') or 'no word of it yet'})"
        if self.args["service"] == "k3s" and run(*self.kubectl, "get", "--raw=/readyz").stdout.strip() != "ok":
            return "the API server's /readyz"
        return ""

    def ended(self) -> int:
        shown = run("systemctl", "show", "-p", "NRestarts", "--value", self.unit).stdout.strip()
        return int(shown) if shown.isdigit() else 0

    def log(self, since: float) -> list:
        words = ("journalctl", "--no-pager", "-o", "cat", "-n", "200", "-u", self.unit, f"--since=@{int(since)}")
        return [TOKENS.sub("(secret)", line) for line in run(*words).stdout.splitlines() if line.strip()]

    def hopeless(self, since: float) -> bool:
        return self.ended() >= ENDS or sum(bool(HOPELESS.search(line)) for line in self.log(since)) >= ENDS

    def last_words(self, since: float) -> str:
        lines = self.log(since)
        told = [line for line in lines if re.search(r"level=(fatal|error)|Incorrect Usage|not defined|refused", line)]
        return "\n".join(f"  | {line[:400]}" for line in dict.fromkeys(told[-8:] or lines[-12:]))


def moment(stamp: str) -> float:
    """As Kubernetes writes it, 2026-11-21T20:50:20.123456Z."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{rest or 0}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "node": {"type": "str", "required": True},
            "binary": {"type": "path", "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "reasons": {"type": "list", "elements": "str", "required": True},
            "seconds": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    args = module.params
    why = "".join(f"{reason}\n" for reason in args["reasons"])
    diff = {"before": "", "after": why, "after_header": f"why {args['service']} is started"}
    if module.check_mode:
        module.exit_json(changed=True, diff=diff)
    start = Start(args)
    for words in (["daemon-reload"], ["enable", start.unit], ["reset-failed", start.unit]):
        run("systemctl", *words)
    since = time.time()
    asked = run("systemctl", "restart", "--no-block", start.unit)
    waiting = asked.stderr.strip() or "the unit to start"
    while asked.returncode == 0 and time.time() < since + args["seconds"] and not start.hopeless(since):
        waiting = start.ready(since)
        if not waiting:
            module.exit_json(changed=True, seconds=round(time.time() - since, 1), diff=diff)
        time.sleep(1)
    module.fail_json(
        msg=f"{start.unit}: after {time.time() - since:.0f} s still waiting for {waiting}; "
        f"it ended {start.ended()} times. It said:\n{start.last_words(since)}\n"
        f"`journalctl -u {args['service']}` has all of it; it may take k3s_ready_seconds ({args['seconds']})"
    )


if __name__ == "__main__":
    main()
