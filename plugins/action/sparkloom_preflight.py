from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.base.repository import kept
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.site import ansible, preflight

DOCUMENTATION = r"""
module: sparkloom_preflight
short_description: Decide what to read of every machine, and judge what was read
description: [The facts of every machine are kept in build/<site>/preflight.json.]
options:
  probe: {type: str, description: [Variable that every machine registered; without it C(reads) says what to read.]}
  settings:
    type: dict
    required: true
    description: [What is expected of a node.]
    suboptions:
      profile: {type: str, required: true, description: [What is to be served; empty for nothing.]}
      groups: {type: list, elements: dict, description: [Of the site's list; none of a site with one profile.]}
      disk_path: {type: str, required: true, description: [Folder that will hold images and logs.]}
      free_gib: {type: float, required: true, description: [Room that it needs.]}
      server_free_gib: {type: float, required: true, description: [Room on a server beside the Sparks.]}
      count_weights: {type: bool, required: true, description: [Whether the profile's weights count too.]}
      driver: {type: str, required: true, description: [The driver that the measured figures were made with.]}
      clock_seconds: {type: float, required: true, description: [How far a clock may be from the others.]}
      kernels_allowed: {type: list, elements: str, required: true, description: [Kernels that the site knows to work.]}
      memory_gib: {type: float, required: true, description: [Less than this available is a warning.]}
      cuda: {type: bool, required: true, description: [Whether an idle GPU is asked for its free memory and its clock.]}
      gpu_mhz: {type: float, required: true, description: [A GPU under load below this is in its slow state.]}
      cgroup_v1: {type: bool, required: true, description: [The site lets its kubelets run with cgroup version 1.]}
      k3s_adopt: {type: bool, required: true, description: [Consent to take over a K3s that is there.]}
      adopt: {type: bool, required: true, description: [Consent to take over what defines the rails now.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster, settings = ansible.cluster(task_vars), args["settings"]
        if not args["probe"]:
            return {"reads": preflight.reads(cluster, settings)}
        probes = ansible.registered(task_vars, args["probe"], GROUP, SERVERS)
        only = [str(host) for host in task_vars["ansible_play_hosts_all"]]
        judged = preflight.judge(cluster, probes, settings, only=only)
        path = judged.keep(kept(cluster.name))
        text = f"{judged.report}\nfacts of every node: {path}"
        return {"failed": judged.failed, "msg": text, "rows": judged.rows}
