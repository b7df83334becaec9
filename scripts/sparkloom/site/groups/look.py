"""One group beside what would be applied, for the doctor: judged, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom import case
from sparkloom.base.finding import Finding
from sparkloom.inputs import serving as serving_list
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names
from sparkloom.site import client, ranks
from sparkloom.site.checks import kubernetes, report, serving
from sparkloom.site.groups import leftovers, observed, secrets
from sparkloom.site.groups.group import RenderedGroup
from sparkloom.site.objects import Api

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    cluster: Cluster
    group: RenderedGroup
    listed: Mapping[str, Any] | None

    @classmethod
    def of(cls, args: Data, listed: Mapping[str, Any] | None, cluster: Cluster) -> Asked:
        policy = args["options"]["transport"]
        how = {"force": args["options"]["force"], "policy": policy}
        if args["group"] and not args["seat"]:
            made = case.render_group(args["group"], listed, runs=observed.known(cluster), **how)
        else:
            made = case.render(args["profile"], cluster, seat=args["seat"], **how)
        return cls(cluster, RenderedGroup(made, policy), listed)

    @property
    def entries(self) -> serving_list.Serving | None:
        return serving_list.from_vars(self.listed, self.cluster) if self.listed else None


def of_cluster(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    findings = kubernetes.judge(asked.cluster, asked.group.rendered.objects, reached.facts("nvidia"))
    return report.verdict([*findings, *kubernetes.names(asked.cluster, reached.dns())], "as planned")


def of_secrets(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    kept = list(secrets.of_group(reached, asked.group, dry=True))
    return {"changed": any(one.made for one in kept), "drift": [entry for one in kept for entry in one.drift]}


def of_objects(asked: Asked) -> Data:
    demanded = observed.on_demand(asked.entries) if asked.entries else ()
    differing = Api(client.of(asked.cluster)).differing(asked.group.rendered.objects, demanded)
    return {"changed": bool(differing), "differing": differing}


def of_ranks(asked: Asked) -> Data:
    reached = client.of(asked.cluster)
    wanted = observed.wanted(reached, asked.entries) if asked.entries else {}
    asleep = {label for label, pods in wanted.items() if not pods}
    return report.verdict(
        judged(asked.cluster, reached, asked.group, listed=asked.listed is not None, asleep=asleep), "as planned"
    )


def judged(
    cluster: Cluster,
    reached: client.Client,
    group: RenderedGroup,
    *,
    listed: bool = False,
    asleep: Collection[str] = (),
) -> list[Finding]:
    """`listed`: of a site that serves several, where others are beside this group and not in place of it.

    `asleep`: labels of groups that the next request wakes.
    """
    mine = group.label
    if mine in asleep:
        return []
    nodes = [rank.place.node.name for rank in group.launch.ranks]
    there = reached.pods(names.ENGINES)
    pods = [pod for pod in there if pod.metadata.labels.get(names.PROFILE) == mine]
    others = [] if listed else sorted({str(pod.metadata.labels.get(names.PROFILE)) for pod in there} - {mine})
    planned = [{"rank": rank, "node": node} for rank, node in enumerate(nodes)] if pods else []
    left = [f"{kind} {name}" for kind, _, name in leftovers.found(reached, {mine})] if pods and not listed else []
    served = group.pods(0, 0)
    seen = ranks.read(reached, pods, planned, names.group(mine))
    called = {str(rank): node for rank, node in enumerate(nodes)}
    seen = [{**rank, "node": called.get(rank["rank"], rank["node"])} for rank in seen]
    return serving.ranks(serving.Applied(mine, served.config_hash, served.read), seen, others, left)


def _answered(look: Callable[[Asked], Data]) -> Callable[[Asked], Data]:
    def asked(about: Asked) -> Data:
        try:
            return look(about)
        except (ApiException, HTTPError) as error:
            return report.verdict([kubernetes.silent(about.cluster, error)], "as planned")

    return asked


LOOKS = {
    "cluster": _answered(of_cluster), "secrets": _answered(of_secrets),
    "objects": _answered(of_objects), "ranks": _answered(of_ranks),
}  # fmt: skip
