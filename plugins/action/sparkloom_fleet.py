from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.render.manifests import names
from sparkloom.site import ansible, client, fleet, leftovers, rollout

DOCUMENTATION = r"""
module: sparkloom_fleet
short_description: Plan which groups a site serves, and in which waves they end and start
description:
  - The site's list (C(serve)), or its one profile. What runs is asked of the cluster, and stays unless it must not.
options:
  what:
    type: str
    default: groups
    choices: [groups, plan, back, asleep, keep]
    description:
      - C(groups) says which groups there are to be, each with its profile, its nodes and its seat; without a cluster
        that answers, by what was recorded last.
      - C(plan) asks the cluster, judges every group, and says in which waves they end and start.
      - C(back) is that plan for one group alone, with the profile that it had before.
      - C(asleep) asks which groups sleep now, and gives their labels.
      - C(keep) records what runs in build/<site>/fleet.json, and takes away what groups left that are in no list.
  profile: {type: str, default: "", description: [What a site without a list serves; with back what was there.]}
  group: {type: str, default: "", description: ["Which group of the list; with back."]}
  force: {type: bool, default: false, description: [Go on in spite of error findings; with plan.]}
  transport: {type: str, default: refuse, choices: [refuse, warn], description: [As sparkloom_render takes it.]}
  kept: {type: list, elements: str, default: [], description: [Records of proved starts that groups have; with keep.]}
  labels: {type: list, elements: str, default: [], description: ["Of a list's groups; with keep."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if args["what"] == "keep":
            return self._keep(args, task_vars)
        work = {"groups": self._groups, "plan": self._plan, "back": self._back, "asleep": self._asleep}
        return work[args["what"]](args, task_vars)

    def _keep(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        if self._task.check_mode:
            return {}
        # a proof takes these away, too; where all sleep none was asked for
        gone = leftovers.take(client.of(cluster), args["labels"]) if args["labels"] else []
        rollout.forget(cluster, args["kept"])
        return {"changed": bool(gone), "gone": gone, "asleep": rollout.keep(cluster)}

    def _asleep(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        runs = fleet.running(ansible.cluster(task_vars)).values()
        return {"labels": [names.marked(one.name) for one in runs if not one.awake]}

    def _groups(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        if (listed := ansible.listed(task_vars)) is None:
            made = rollout.alone(args["profile"], cluster, {}) if args["profile"] else rollout.Rollout([], [])
        else:
            planned = case.fleet(listed, runs=fleet.known(cluster))
            made = rollout.Rollout(rollout.members(planned), [])
            rollout.refuse(planned.findings, force=args["force"])
        return {"listed": listed is not None, "groups": made.as_dict()["groups"]}

    def _back(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if not args["group"]:
            return self._plan(args, task_vars)
        listed = ansible.listed({**task_vars, "group": args["group"], "profile": args["profile"]})
        made = self._made(listed, args, task_vars)
        return rollout.only(made, args["group"]).as_dict()

    def _plan(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        reached = {"kubeconfig": client.kubeconfig(cluster), "namespace": cluster.namespace}
        if (listed := ansible.listed(task_vars)) is None:
            made = rollout.alone(args["profile"], cluster, fleet.unrecorded(cluster, {}))
        else:
            made = self._made(listed, args, task_vars)
            rollout.refuse(made.findings, force=args["force"])
        return {**reached, **made.as_dict(), "listed": listed is not None, "msg": made.said}

    def _made(self, listed: ansible.Data | None, args: ansible.Data, task_vars: ansible.Data) -> rollout.Rollout:
        cluster = ansible.cluster(task_vars)
        runs = fleet.running(cluster)
        planned = case.fleet(listed, runs=runs)
        return rollout.of_list(planned, runs, fleet.unrecorded(cluster, runs), args["transport"])
