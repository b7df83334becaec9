"""What of ours is taken out of a cluster, in a safe order: workloads first, then their networks, Multus last.

Only objects that carry our label go. Nothing is deleted by force: a pod whose end is cut short keeps its virtual
functions in a dead network namespace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from sparkloom.base.errors import InputError
from sparkloom.render.manifests import gateway, multus, names, page
from sparkloom.site.client import Client, selector
from sparkloom.site.patience import until_gone

WORKLOADS = (
    ("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job"),
)  # fmt: skip
PODS = ("v1", "Pod")
NETWORKS = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
NAMESPACE = ("v1", "Namespace")
PRIORITY = ("scheduling.k8s.io/v1", "PriorityClass")
REST = (
    ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "ServiceAccount"),
    (names.RIGHTS, "Role"), (names.RIGHTS, "RoleBinding"),
    ("networking.k8s.io/v1", "NetworkPolicy"), ("policy/v1", "PodDisruptionBudget"),
    gateway.INGRESS, *gateway.TRAEFIK, ("coordination.k8s.io/v1", "Lease"),
)  # fmt: skip
ACROSS = ((names.RIGHTS, "ClusterRoleBinding"), (names.RIGHTS, "ClusterRole"))  # of the page, in no namespace
# For a Prometheus' operator; in its own namespace where it looks nowhere else.
MONITORS = (("monitoring.coreos.com/v1", "PodMonitor"), ("monitoring.coreos.com/v1", "PrometheusRule"))
# What a namespace holds without anyone's doing.
BORN_WITH = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"), ("Service", "kubernetes")}
OURS = selector(names.PART_OF)
SERVING_FIRST = "stop serving first: -e teardown_serving=true"


@dataclass(slots=True)
class Taker:
    """One cluster through the client's dynamic interface; `dry` says what would go."""

    client: Any
    namespace: str
    dry: bool
    say: Callable[[str], object]
    patience: float = 300.0
    gone: list[str] = field(default_factory=list)
    multus_stays: bool = False

    def kind(self, kind: tuple[str, str]) -> Any:
        """The interface to a kind, or None where the cluster does not know it."""
        try:
            return self.client.resources.get(api_version=kind[0], kind=kind[1])
        except ResourceNotFoundError:
            return None

    def found(
        self, kind: tuple[str, str], *, namespace: str | None = None, ours: bool = True, labels: str = OURS
    ) -> list[Any]:
        resource = self.kind(kind)
        if resource is None:
            return []
        where = {"namespace": namespace} if namespace else {}
        try:
            return list(resource.get(**where, **({"label_selector": labels} if ours else {})).items)
        except NotFoundError:  # the client keeps what kinds there were; this one has gone since
            return []

    def delete(self, kind: tuple[str, str], objects: list[Any]) -> None:
        """In the foreground: an object is gone when everything that it owns is."""
        for one in objects:
            name, space = one.metadata.name, one.metadata.namespace
            self.gone.append(f"{kind[1]} {name}")
            if not self.dry:
                body = {"propagationPolicy": "Foreground"}
                with contextlib.suppress(NotFoundError):
                    self.kind(kind).delete(name=name, body=body, **({"namespace": space} if space else {}))

    def wait(self, what: str, left: Callable[[], list[str]]) -> None:
        if not self.dry:
            until_gone(what, left, self.say, self.patience)


def left_over(reached: Client, kinds: Iterable[tuple[str, str]], labels: Mapping[str, str], *, dry: bool) -> list[str]:
    """Kind and name of what a site that goes on needs no more, taken away."""
    taker = Taker(DynamicClient(reached.core.api_client), reached.namespace, dry, print)
    for kind in kinds:
        taker.delete(kind, taker.found(kind, namespace=reached.namespace, labels=selector(labels)))
    return taker.gone


def serving(taker: Taker) -> None:
    """Every group that is served, and the router before them; the namespace and its networks stay."""
    _take(taker, lambda kind: taker.found(kind, namespace=taker.namespace))
    for kind in ACROSS:
        mine = page.across(taker.namespace)
        taker.delete(kind, [one for one in taker.found(kind) if one.metadata.name == mine])
    for kind in MONITORS:
        taker.delete(kind, taker.found(kind))


def group(taker: Taker, labels: Collection[str], also: Collection[tuple[str, str]] = ()) -> None:
    """One group of several, by the values of its label; `also`: kind and name of what is its own without that label.

    What belongs to the site (namespace, attachments, router, keys) is nobody's group's, and stays.
    """

    def mine(kind: tuple[str, str]) -> list[Any]:
        there = taker.found(kind, namespace=taker.namespace)
        return [one for one in there if _is_of(one, labels) or (kind[1], one.metadata.name) in also]

    _take(taker, mine)


def _take(taker: Taker, mine: Callable[[tuple[str, str]], list[Any]]) -> None:
    """What makes pods, once these have ended the rest."""
    for kind in WORKLOADS:
        taker.delete(kind, mine(kind))
    taker.wait("pods", lambda: _names(mine(PODS)))
    for kind in REST:
        taker.delete(kind, mine(kind))


def _is_of(one: Any, labels: Collection[str]) -> bool:
    return (one.metadata.labels or {}).get(names.PROFILE) in labels


def networks(taker: Taker) -> None:
    """The rails' attachments, our namespace when nobody else uses it, and Multus when it is ours."""
    pods = [*taker.found(PODS, namespace=taker.namespace), *_held(taker)]
    if pods and not taker.dry:
        raise InputError.single(
            taker.namespace,
            f"found pods {', '.join(sorted(set(_names(pods))))}, expected none; {SERVING_FIRST}",
            rule="in-use",
        )
    taker.delete(NETWORKS, taker.found(NETWORKS, namespace=taker.namespace))
    taker.delete(PRIORITY, taker.found(PRIORITY))
    spaces = [one for one in taker.found(NAMESPACE) if one.metadata.name == taker.namespace]
    if spaces and (others := sorted(not_ours(taker, taker.namespace))):
        taker.say(f"the namespace {taker.namespace} stays: it holds {', '.join(others)}, which is not ours")
        spaces = []
    taker.delete(NAMESPACE, spaces)
    taker.wait("namespace", lambda: _names(spaces and _still(taker, NAMESPACE, taker.namespace)))
    _multus(taker)


def _multus(taker: Taker) -> None:
    """Reversed order of its making. Where attachments of others remain, all of it stays: their pods need it."""
    left = [one for one in taker.found(NETWORKS, ours=False) if one.metadata.namespace != taker.namespace]
    if left:
        taker.multus_stays = True
        taker.say(f"Multus stays: {', '.join(_names(left))} in other namespaces use it")
        return
    for wanted in reversed(multus.multus("unused", "/unused", "/unused")):
        kind, name = (wanted["apiVersion"], wanted["kind"]), wanted["metadata"]["name"]
        space = wanted["metadata"].get("namespace")
        taker.delete(kind, [one for one in taker.found(kind, namespace=space) if one.metadata.name == name])
    picked = selector(multus.SELECTOR)
    pods = taker.kind(PODS)
    taker.wait("Multus", lambda: _names(pods.get(namespace=multus.NAMESPACE, label_selector=picked).items))


def _held(taker: Taker) -> list[Any]:
    """Pods of others that were given one of our networks."""
    key = "k8s.v1.cni.cncf.io/networks"
    return [
        p
        for p in taker.found(PODS, ours=False)
        if f"{taker.namespace}/rail-" in (p.metadata.annotations or {}).get(key, "")
    ]


def _still(taker: Taker, kind: tuple[str, str], name: str) -> list[Any]:
    return [one for one in taker.found(kind) if one.metadata.name == name]


def not_ours(taker: Taker, space: str) -> Iterator[str]:
    """What someone else keeps in a namespace."""
    for kind in (*WORKLOADS, PODS, *REST, ("v1", "PersistentVolumeClaim")):
        for one in taker.found(kind, namespace=space, ours=False):
            labels: Mapping[str, str] = one.metadata.labels or {}
            mine = all(labels.get(label) == value for label, value in names.PART_OF.items())
            if not mine and not one.metadata.ownerReferences and (kind[1], one.metadata.name) not in BORN_WITH:
                yield f"{kind[1]} {one.metadata.name}"


def _names(objects: list[Any]) -> list[str]:
    return [str(one.metadata.name) for one in objects]


# --- consent ------------------------------------------------------------------------------------------------------


PARTS = {
    "serving": "ends all that is served: pods, Services and settings in the cluster, and the compiled kernels",
    "cluster": "takes Multus, the attachments and our namespace out of the cluster, and K3s where we installed it",
    "fabric": "puts the rails back: virtual functions, addresses, netplan file, kernel settings",
    "nodes": "puts every other file and kernel setting of the nodes back",
    "weights": "deletes the downloaded weights on every node",
}


def refusal(consent: Mapping[str, bool], tags: list[str], group: str = "") -> str:
    """Why nothing may be taken away, or nothing. A part that is named by a tag needs its own consent too.

    A group that is named is a consent of its own, to its end alone.
    """
    if group:
        consent = {**consent, "serving": True}
        whole = [part for part in PARTS if part != "serving" and consent[part]]
        if whole:
            told = ", ".join(f"teardown_{part}" for part in whole)
            return (
                f"teardown_group={group} ends one group alone; found {told} too, which takes from the whole site: "
                "run the two one after the other"
            )
    named = [part for part in PARTS if part in tags]
    missing = [part for part in named if not consent[part]] or ([] if any(consent.values()) else list(PARTS))
    if not missing:
        return ""
    lines = [f"  -e teardown_{part}=true   {PARTS[part]}" for part in missing]
    lines += ["  -e teardown_group=NAME   ends one group alone; the others serve on"] if "serving" in missing else []
    found = ", ".join(named) if named else "no consent"
    return "\n".join([f"found {found}, expected a consent for each part that is to be taken away:", *lines])
