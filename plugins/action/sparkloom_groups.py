from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom import case
from sparkloom.inputs.cluster import Cluster
from sparkloom.site import ansible, client
from sparkloom.site.doctor import look
from sparkloom.site.groups import observed, planning
from sparkloom.site.groups.reconcile import Reconciler, Run, Stopped, journal

DOCUMENTATION = r"""
module: sparkloom_groups
short_description: Make what a site serves equal to its list, or to its one profile, step by step
description:
  - What runs is asked of the cluster, and stays unless it must not. A dry run says what each step would change.
  - Each step but C(list), C(plan) and C(look) takes the C(run) that the one before it gave.
options:
  what:
    type: str
    required: true
    choices: [list, plan, prepare, end, start, back, finish, look]
    description:
      - C(list) says which groups there are to be, each with its profile, its nodes and its seat; without a cluster
        that answers, by what was recorded last.
      - C(plan) asks the cluster, judges every group, and says in which waves they end and start.
      - C(prepare) judges the cluster and makes the Secrets of each group.
      - C(end) and C(start) do one wave; between them the nodes say how much memory they have.
      - C(back) plans the waves in which the last good profile of what did not start starts again.
      - C(finish) has the waker work again and records what runs.
      - C(look) judges one group beside what would be applied.
  profile: {type: str, default: "", description: [What a site without a list serves.]}
  force: {type: bool, default: false, description: ["Go on in spite of error findings; with list."]}
  replace: {type: bool, default: false, description: ["Whether another served profile may end for it; with plan."]}
  options:
    type: dict
    description: [What every step of the run goes by; with plan and look.]
    suboptions:
      force: {type: bool, required: true, description: [Serve although rules have error findings.]}
      transport: {type: str, required: true, choices: [refuse, warn], description: [Without all rails.]}
      timeout: {type: float, required: true, description: [Seconds from applied to ready; 0 as the profile says.]}
      restarts: {type: int, required: true, description: [A rank that ended this often is given up.]}
      smoke_tokens: {type: int, required: true, description: [Limit of the answer that proves it.]}
      smoke_timeout: {type: float, required: true, description: [Seconds that one token may take.]}
      memory_slack: {type: float, required: true, description: [GiB that may be gone for other reasons.]}
      rollback: {type: bool, required: true, description: [Start what served before where a start fails.]}
  run: {type: dict, description: ["What the step before gave; with finish empty where it failed."]}
  wave: {type: dict, description: [One of the run's waves.]}
  memory: {type: str, description: [Variable that the nodes registered from sparkloom_memory; with start.]}
  group: {type: str, default: "", description: ["Which group of the list; with look."]}
  seat: {type: dict, default: {}, description: [What C(list) gave for the group; with look.]}
  part: {type: str, choices: [cluster, secrets, objects, ranks], description: [What is judged; with look.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (
        ("what", "plan", ("options",)),
        ("what", "prepare", ("run",)),
        ("what", "end", ("run", "wave")),
        ("what", "start", ("run", "wave", "memory")),
        ("what", "back", ("run",)),
        ("what", "finish", ("run",)),
        ("what", "look", ("part", "options")),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        if args["what"] == "list":
            return self._list(args, task_vars, cluster)
        if args["what"] == "plan":
            return self._plan(args, task_vars, cluster)
        if args["what"] == "look":
            return look.LOOKS[args["part"]](look.Asked.of(args, ansible.listed(task_vars), cluster))
        return self._step(args, task_vars, cluster)

    def _list(self, args: ansible.Data, task_vars: ansible.Data, cluster: Cluster) -> ansible.Data:
        if (listed := ansible.listed(task_vars)) is None:
            made = planning.alone(args["profile"], cluster, {}) if args["profile"] else planning.Rollout([], [])
        else:
            planned = case.fleet(listed, runs=observed.known(cluster))
            made = planning.Rollout(planning.members(planned), [])
            planning.refuse(planned.findings, force=args["force"])
        return {"listed": listed is not None, "groups": made.as_dict()["groups"]}

    def _plan(self, args: ansible.Data, task_vars: ansible.Data, cluster: Cluster) -> ansible.Data:
        listed = ansible.listed(task_vars)
        made = planning.rollout(listed, args["profile"], cluster, args["options"]["transport"])
        planning.refuse(made.findings, force=args["options"]["force"])
        if listed is None and not args["replace"] and (told := planning.in_the_way(made, args["profile"])):
            return {"failed": True, "msg": told}
        if made.said:
            Display().display(made.said)
        return {"run": asdict(Run.of(made, args["options"], listed=listed is not None))}

    def _step(self, args: ansible.Data, task_vars: ansible.Data, cluster: Cluster) -> ansible.Data:
        display, dry = Display(), bool(self._task.check_mode)
        # A step that failed gave none, and the waker must work again all the same.
        if not (told := args["run"] or journal(client.of(cluster))):
            return {}
        does = Reconciler(
            cluster, Run(**told), display.display, lambda text: display.display(text, newline=False), dry=dry
        )
        steps: dict[str, Callable[[], object]] = {
            "prepare": lambda: does.prepare(does.run.groups),
            "end": lambda: does.end(args["wave"]),
            "start": lambda: does.start(args["wave"], ansible.registered(task_vars, args["memory"])),
            "back": lambda: does.back(lambda name, good: self._back(name, good, does, task_vars)),
            "finish": does.finish,
        }
        try:
            steps[args["what"]]()
        except Stopped as stopped:
            return ansible.verdict(stopped.findings, "") | {"run": asdict(does.run)}
        differing = [one for one in does.changed if one.get("diff")]
        diff = [{"before_header": f"{one['kind']} {one['name']}", **one["diff"]} for one in differing]
        return {"changed": bool(does.changed), "run": asdict(does.run), "ends": does.run.ends, "diff": diff}

    @staticmethod
    def _back(name: str, good: str, does: Reconciler, task_vars: ansible.Data) -> planning.Rollout:
        group = name if does.run.listed else ""
        listed = ansible.listed({**task_vars, "group": group, "profile": good})
        made = planning.rollout(listed, good, does.cluster, does.options.transport)
        return planning.only(made, group) if group else made
