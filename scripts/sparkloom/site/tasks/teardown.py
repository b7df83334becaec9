"""Takes what is ours out of the cluster, with consent: only objects that carry our label, and nothing by force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.site import ansible, client, nodefiles, one_group, patience, teardown
from sparkloom.site.ansible import Context, Data
from sparkloom.site.groups import planning
from sparkloom.site.objects import Taker


class Consent(TypedDict):
    """Which parts may go."""

    serving: bool  # the served model
    cluster: bool  # Multus, the networks, our namespace and our K3s
    fabric: bool  # what the rails were given
    nodes: bool  # every other file and kernel setting
    weights: bool  # the downloaded weights


def plan(
    context: Context,
    consent: Consent,
    group: str = "",  # the one group that ends; empty for all
) -> Data:
    """Asks for consent and says what the nodes have."""
    tags, agreed = [str(tag) for tag in context.vars["ansible_run_tags"]], dict[str, Any](consent)
    if refusal := teardown.refusal(agreed, tags, group):
        return {"failed": True, "msg": refusal}
    cluster = context.cluster
    silent = _silent(cluster) if consent["serving"] or consent["cluster"] else ""
    if refusal := teardown.unheard(silent, agreed, ours=cluster.kubernetes.provider == "k3s"):
        return {"failed": True, "msg": refusal}
    nodes = nodefiles.every(cluster, fabric.plan(cluster))
    site = {
        "functions": {name: node["functions"] for name, node in nodes.items()},
        "provider": cluster.kubernetes.provider,
        "store": cluster.model_store,
        "kernels": [str(PurePosixPath(cluster.model_store).parent / "cache")],
        "own": {},
        "silent": silent,
    }
    if not group:
        return site
    listed = ansible.listed(context.vars) or cluster
    return site | one_group.to_end(cluster, listed, group)


def others(
    context: Context,
    others: Mapping[str, Any],  # what others keep, by machine
    agreed: bool,  # whether that may go too
    silent: str = "",  # why the cluster's API does not answer
) -> Data:
    """Asks for consent when the cluster holds what is not ours, or does not tell."""
    cluster = context.cluster
    found = [] if silent or _gone(cluster) else teardown.of_others(_taker(context, cluster))
    found += [f"namespaces and objects that nobody can name now: {silent}"] if silent else []
    said = teardown.kept_by_others(found, others, consent=agreed)
    return {"failed": True, "msg": said} if said else {"changed": False, "others": found}


def serving(
    context: Context,
    own: Mapping[str, Any] = {},  # what `plan` gave, of one group
    silent: str = "",  # why the cluster's API does not answer
) -> Data:
    """Ends what is served, or the one group."""

    def take(taker: Taker) -> None:
        if own:
            teardown.group(taker, own["labels"], {(kind, name) for kind, name in own["also"]})
        else:
            teardown.serving(taker)
        if not taker.dry:
            planning.keep(context.cluster)

    return _take(context, take, silent)


def networks(context: Context, silent: str = "") -> Data:
    """Takes networks and Multus away; those of a cluster that is `silent` go with it."""
    return _take(context, teardown.networks, silent)


def _take(context: Context, take: Callable[[Taker], bool | None], silent: str) -> Data:
    """`take` says whether Multus stays, where it is about networks."""
    cluster = context.cluster
    if silent or _gone(cluster):
        message = silent or "K3s is gone already, or never was: there is no access to a cluster of ours"
        return {"changed": False, "gone": [], "multus_stays": False, "msg": message}
    taker = _taker(context, cluster)
    stays = bool(take(taker))
    message = ", ".join(taker.gone) or "nothing was there"
    return {"changed": bool(taker.gone), "gone": taker.gone, "multus_stays": stays, "msg": message}


def _silent(cluster: Cluster) -> str:
    """Why its API does not answer; nothing of one that does, or that is gone."""
    try:
        if not _gone(cluster):
            client.of(cluster).answers()
    except (ApiException, HTTPError) as error:
        if getattr(error, "status", 500) < 500:  # it answers, and refuses
            raise
        return patience.trouble(error)
    return ""


def _taker(context: Context, cluster: Cluster) -> Taker:
    return Taker.of(client.of(cluster), dry=context.dry, say=context.say)


def _gone(cluster: Cluster) -> bool:
    return cluster.kubernetes.provider == "k3s" and not Path(client.kubeconfig(cluster)).exists()
