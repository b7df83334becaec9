"""One group beside what would be applied, for the doctor: judged, and nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base.finding import Finding
from sparkloom.inputs import serving as serving_list
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names
from sparkloom.site import client, now
from sparkloom.site.checks import kubernetes, report, serving
from sparkloom.site.groups import leftovers, observed, secrets, sets
from sparkloom.site.groups.group import RenderedGroup
from sparkloom.site.objects import Api

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    cluster: Cluster
    group: RenderedGroup
    listed: Mapping[str, Any] | None

    @property
    def on_demand(self) -> set[str]:
        """Labels of the list's groups whose waker says how many pods they have."""
        entries = serving_list.from_vars(self.listed, self.cluster).entries if self.listed else ()
        return {names.marked(entry.called) for entry in entries if entry.on_demand}


def of_cluster(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    findings = kubernetes.judge(asked.cluster, asked.group.launch, reached.facts())
    return report.verdict([*findings, *kubernetes.names(asked.cluster, reached.dns())], "as planned")


def of_secrets(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    kept = list(secrets.of_group(reached, asked.group, dry=True))
    return {"changed": any(one.made for one in kept), "drift": [entry for one in kept for entry in one.drift]}


def of_objects(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    by = observed.stopped_by_label(reached).get(asked.group.label, "")
    objects = sets.kept_stopped(asked.group.rendered.objects, by)
    differing = Api(reached).differing(objects, set() if by else asked.on_demand)
    return {"changed": bool(differing), "differing": differing}


def of_ranks(asked: Asked) -> Data:
    here = {"listed": asked.listed is not None, "on_demand": asked.group.label in asked.on_demand}
    found = judged(client.of(asked.cluster), asked.group, **here)
    return report.verdict(found, "as planned")


def judged(
    reached: client.Client, group: RenderedGroup, *, listed: bool = False, on_demand: bool = False
) -> list[Finding]:
    """`listed`: of a site that serves several, where others are beside this group and not in place of it."""
    shown = now.one(reached, group, on_demand=on_demand)
    there = {str(pod.metadata.labels.get(names.PROFILE)) for pod in reached.pods(names.ENGINES)}
    others = [] if listed else sorted(there - {group.label})
    keeps = shown["state"] in ("down", "asleep", "stopped") or listed
    left = [] if keeps else leftovers.take(reached, {group.label}, dry=True)
    served = group.pods(0, 0)
    return serving.ranks(serving.Applied(group.label, served.config_hash, served.read), shown, others, left)


def look(part: str, asked: Asked) -> Data:
    """One part of what is judged: a name of `PARTS`."""
    try:
        return PARTS[part](asked)
    except (ApiException, HTTPError) as error:
        return report.verdict([kubernetes.silent(asked.cluster, error)], "as planned")


PARTS = {"cluster": of_cluster, "secrets": of_secrets, "objects": of_objects, "ranks": of_ranks}
