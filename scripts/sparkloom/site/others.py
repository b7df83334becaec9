"""What others keep in a cluster that is about to be taken away with all its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkloom.site import teardown
from sparkloom.site.objects import Taker

# Kubernetes' own, and `default`, which everybody has; K3s' parts live in the first.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease", "default")
VOLUMES = ("v1", "PersistentVolume")
CONSENT = "-e teardown_others=true"


def in_cluster(taker: Taker) -> list[str]:
    """Namespaces with their pods, objects in `default` and in our namespace, volumes; as a person reads them."""
    return [*_namespaces(taker), *_objects(taker), *_volumes(taker)]


def refusal(cluster: list[str], machines: Mapping[str, list[str]], *, consent: bool) -> str:
    """Why nothing is taken away yet, or nothing."""
    found = [*cluster, *(f"{name}: {thing}" for name, things in machines.items() for thing in things)]
    if not found or consent:
        return ""
    lines = [f"  {thing}" for thing in found]
    return "\n".join(
        [
            "found in this cluster what is not ours; with K3s its data goes, so nothing was taken away:",
            *lines,
            f"expected none, or a consent of its own: {CONSENT} deletes it too. To keep it, copy it away first",
        ]
    )


def _namespaces(taker: Taker) -> Iterator[str]:
    pods = taker.found(teardown.PODS, labels="")
    for one in taker.found(teardown.NAMESPACE, labels=""):
        name = str(one.metadata.name)
        if name not in (*SYSTEM, taker.namespace):
            running = sorted(str(pod.metadata.name) for pod in pods if pod.metadata.namespace == name)
            shown = ", ".join(running[:3]) + (f" and {len(running) - 3} more" if len(running) > 3 else "")
            yield f"namespace {name} (pods: {shown or 'none'})"


def _objects(taker: Taker) -> Iterator[str]:
    for space in ("default", taker.namespace):
        for thing in sorted(teardown.not_ours(taker, space)):
            yield f"{thing} in namespace {space}"


def _volumes(taker: Taker) -> Iterator[str]:
    """We make none: every volume is somebody's data."""
    for one in taker.found(VOLUMES, labels=""):
        claim = getattr(one.spec, "claimRef", None)
        held = f" of {claim.namespace}/{claim.name}" if claim else ""
        yield f"volume {one.metadata.name}{held}"
