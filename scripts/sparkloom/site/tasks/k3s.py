"""What K3s needs on every machine. The files that are written here are on the controller alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.onnode.kube import JSON
from sparkloom.render.k3s import machines, paths
from sparkloom.render.k3s import options as given
from sparkloom.site import ansible, client, holding, teardown
from sparkloom.site.ansible import Context, Data
from sparkloom.site.k3s import access, steps


def plan(context: Context, options: Mapping[str, Any]) -> Data:
    """What every machine should have, by the role's variables; refuses an inventory that cannot become a cluster."""
    rest = {"places": steps.PLACES, "secrets": steps.SECRETS, "staging": paths.STAGING, "causes": steps.causes()}
    return machines.plan(context.cluster, given.options(options)) | rest


def decide(
    context: Context,
    options: Mapping[str, Any],  # the role's variables
    plan: Mapping[str, Any],  # what `plan` gave
    state: str,  # variable that every machine registered
    secrets: str,  # variable that holds the cluster's secrets: named, since a task's arguments may be shown
    images: Sequence[str] = (),  # what nodes pull beside K3s' own
) -> Data:
    """What to do on each machine."""
    states = ansible.registered(context.vars, state, GROUP, SERVERS)
    held = ansible.plain(context.vars[secrets])
    rows, decision = steps.decide(given.options(options), plan, states, steps.hashes(held), images)
    return ansible.verdict(rows, "") | decision


def token_files(context: Context, plan: Mapping[str, Any], secrets: str) -> Data:
    """The token files of machines that join; `secrets` names the variable with the cluster's secrets."""
    tokens = steps.tokens(ansible.plain(context.vars[secrets]))
    return {"hosts": {name: machines.secrets(host, tokens) if tokens else {} for name, host in plan["hosts"].items()}}


def renew_access(context: Context, plan: Mapping[str, Any]) -> Data:
    """The administrator's access from here, where it ends soon or opens nothing; the node is the first server."""
    target, who = client.kubeconfig(context.cluster), access.user(holding.person())
    if access.lasts(target, who, plan["api"]) and _opens(context.cluster):
        return {}
    if not context.dry:
        access.renew(target, who, plan["api"], _name(context.cluster), context.execute)
    return {"changed": True, "path": target}


def _name(cluster: Cluster) -> str:
    return f"sparkloom-{cluster.name}"


def _opens(cluster: Cluster) -> bool:
    """Whether the cluster takes it, and lets it do what this release asks."""
    try:
        return bool(client.of(cluster).api(access.PATH, {}, JSON)["rules"] == access.rules())
    except (ApiException, HTTPError):
        return False


def leftovers(context: Context) -> Data:
    """What the role made and K3s left, for taking it away. Only a cluster of ours is taken away."""
    cluster, target = context.cluster, client.kubeconfig(context.cluster)
    mine = cluster.kubernetes.provider == "k3s"
    members = [member.name for member in reversed(machines.members(cluster))] if mine else []
    left_out = {node.name for node in cluster.nodes} - ansible.asked(context.vars)  # as they are away
    return {
        "machines": [name for name in members if name not in left_out],
        "services": list(paths.SERVICES.values()),
        "data": paths.DATA,
        "mounts": list(paths.LEFT),
        "empty": list(paths.EMPTY),
        "links": list(paths.LINKS),
        "others": {
            "volumes": paths.VOLUMES,
            "containers": paths.CONTAINERS,
            "logs": paths.LOGS[0],
            "ours": [*teardown.SYSTEM, cluster.namespace],
        },
        "remove": [*paths.OURS, *paths.LEFT],
        "kubeconfig": target if mine and access.is_kept(target, _name(cluster)) else "",
    }
