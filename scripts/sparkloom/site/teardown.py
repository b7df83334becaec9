"""What of ours is taken out of a cluster, in a safe order: workloads first, then their networks, Multus last.

Only objects that carry our label go. Nothing is deleted by force: a pod whose end is cut short keeps its virtual
functions in a dead network namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.render.manifests import multus, names, page
from sparkloom.site.client import selector
from sparkloom.site.objects import GONE, Taker

PODS = ("v1", "Pod")
NETWORKS = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
NAMESPACE = ("v1", "Namespace")
PRIORITY = ("scheduling.k8s.io/v1", "PriorityClass")
WORKLOADS, REST = GONE["workloads"], [*GONE["rest"], *GONE["traefik"]]
# What a namespace holds without anyone's doing.
BORN_WITH = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"), ("Service", "kubernetes")}
SERVING_FIRST = "stop serving first: -e teardown_serving=true"


def serving(taker: Taker) -> None:
    """Every group that is served, and the router before them; the namespace and its networks stay."""
    _take(taker, lambda kind: taker.found(kind, namespace=taker.namespace))
    for kind in GONE["across"]:
        mine = page.across(taker.namespace)
        taker.delete(kind, [one for one in taker.found(kind) if one.metadata.name == mine])
    for kind in GONE["monitors"]:
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


def networks(taker: Taker) -> bool:
    """The rails' attachments, our namespace when nobody else uses it, and Multus when it is ours: whether it stays."""
    pods = [*taker.found(PODS, namespace=taker.namespace), *_held(taker)]
    if pods and not taker.dry:
        message = f"found pods {', '.join(sorted(set(_names(pods))))}, expected none; {SERVING_FIRST}"
        raise InputError.single(taker.namespace, message, rule="in-use")
    taker.delete(NETWORKS, taker.found(NETWORKS, namespace=taker.namespace))
    taker.delete(PRIORITY, taker.found(PRIORITY))
    spaces = [one for one in taker.found(NAMESPACE) if one.metadata.name == taker.namespace]
    if spaces and (others := sorted(not_ours(taker, taker.namespace))):
        taker.say(f"the namespace {taker.namespace} stays: it holds {', '.join(others)}, which is not ours")
        spaces = []
    taker.delete(NAMESPACE, spaces)
    taker.wait("namespace", lambda: _names(spaces and _still(taker, NAMESPACE, taker.namespace)))
    return _multus(taker)


def _multus(taker: Taker) -> bool:
    """Reversed order of its making. Where attachments of others remain, all of it stays: their pods need it."""
    left = [one for one in taker.found(NETWORKS, labels="") if one.metadata.namespace != taker.namespace]
    if left:
        taker.say(f"Multus stays: {', '.join(_names(left))} in other namespaces use it")
        return True
    for wanted in reversed(multus.multus("unused", "/unused", "/unused")):
        kind, name = (wanted["apiVersion"], wanted["kind"]), wanted["metadata"]["name"]
        space = wanted["metadata"].get("namespace")
        taker.delete(kind, [one for one in taker.found(kind, namespace=space) if one.metadata.name == name])
    picked = selector(multus.SELECTOR)
    pods = taker.kind(PODS)
    taker.wait("Multus", lambda: _names(pods.get(namespace=multus.NAMESPACE, label_selector=picked).items))
    return False


def _held(taker: Taker) -> list[Any]:
    """Pods of others that were given one of our networks."""
    key = "k8s.v1.cni.cncf.io/networks"
    return [
        p
        for p in taker.found(PODS, labels="")
        if f"{taker.namespace}/rail-" in (p.metadata.annotations or {}).get(key, "")
    ]


def _still(taker: Taker, kind: tuple[str, str], name: str) -> list[Any]:
    return [one for one in taker.found(kind) if one.metadata.name == name]


def not_ours(taker: Taker, space: str) -> Iterator[str]:
    """What someone else keeps in a namespace."""
    for kind in (*WORKLOADS, PODS, *REST, ("v1", "PersistentVolumeClaim")):
        for one in taker.found(kind, namespace=space, labels=""):
            labels: Mapping[str, str] = one.metadata.labels or {}
            mine = all(labels.get(label) == value for label, value in names.PART_OF.items())
            if not mine and not one.metadata.ownerReferences and (kind[1], one.metadata.name) not in BORN_WITH:
                yield f"{kind[1]} {one.metadata.name}"


def _names(objects: list[Any]) -> list[str]:
    return [str(one.metadata.name) for one in objects]


# --- what others keep in a cluster that is about to be taken away with all its data ----------------------------


# Kubernetes' own, and `default`, which everybody has; K3s' parts live in the first.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease", "default")
VOLUMES = ("v1", "PersistentVolume")
CONSENT = "-e teardown_others=true"


def of_others(taker: Taker) -> list[str]:
    """Namespaces with their pods, objects in `default` and in our namespace, volumes; as a person reads them."""
    return [*_namespaces(taker), *_things(taker), *_volumes(taker)]


def kept_by_others(cluster: list[str], machines: Mapping[str, list[str]], *, consent: bool) -> str:
    """Why nothing is taken away yet, or nothing."""
    found = [*cluster, *(f"{name}: {thing}" for name, things in machines.items() for thing in things)]
    if not found or consent:
        return ""
    head = "found in this cluster what is not ours; with K3s its data goes, so nothing was taken away:"
    cure = f"expected none, or a consent of its own: {CONSENT} deletes it too. To keep it, copy it away first"
    return "\n".join([head, *(f"  {thing}" for thing in found), cure])


def _namespaces(taker: Taker) -> Iterator[str]:
    pods = taker.found(PODS, labels="")
    for one in taker.found(NAMESPACE, labels=""):
        name = str(one.metadata.name)
        if name not in (*SYSTEM, taker.namespace):
            running = sorted(str(pod.metadata.name) for pod in pods if pod.metadata.namespace == name)
            shown = ", ".join(running[:3]) + (f" and {len(running) - 3} more" if len(running) > 3 else "")
            yield f"namespace {name} (pods: {shown or 'none'})"


def _things(taker: Taker) -> Iterator[str]:
    for space in ("default", taker.namespace):
        for thing in sorted(not_ours(taker, space)):
            yield f"{thing} in namespace {space}"


def _volumes(taker: Taker) -> Iterator[str]:
    """We make none: every volume is somebody's data."""
    for one in taker.found(VOLUMES, labels=""):
        claim = getattr(one.spec, "claimRef", None)
        held = f" of {claim.namespace}/{claim.name}" if claim else ""
        yield f"volume {one.metadata.name}{held}"


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
            found = f"found {told} too, which takes from the whole site"
            return f"teardown_group={group} ends one group alone; {found}: run the two one after the other"
    named = [part for part in PARTS if part in tags]
    missing = [part for part in named if not consent[part]] or ([] if any(consent.values()) else list(PARTS))
    if not missing:
        return ""
    lines = [f"  -e teardown_{part}=true   {PARTS[part]}" for part in missing]
    lines += ["  -e teardown_group=NAME   ends one group alone; the others serve on"] if "serving" in missing else []
    found = ", ".join(named) if named else "no consent"
    return "\n".join([f"found {found}, expected a consent for each part that is to be taken away:", *lines])


def unheard(why: str, consent: Mapping[str, bool], *, ours: bool) -> str:
    """Why nothing is taken out of a cluster that does not answer, or nothing; ours goes whole, from each node."""
    if not why or (ours and consent["serving"] and consent["cluster"]):
        return ""
    whole = "-e teardown_serving=true -e teardown_cluster=true take K3s off each node, with all that runs there"
    cure = whole if ours else "this cluster is not ours, so its API must answer first"
    return f"{why}\nNothing was taken away. To go on: {cure}"
