"""What the ranks of one group said."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.onnode.now.groups import Observed
from sparkloom.render.manifests.names import RANK
from sparkloom.site import now
from sparkloom.site.client import Client
from sparkloom.site.now import Site


def logs(
    inventory: Inventory, rank: int | None, *, follow: bool, previous: bool, group: str | None = None
) -> Iterator[str]:
    """Lines of one rank, or of all, each with its rank. Of several groups one is chosen by whoever asks."""
    site = now.read(inventory)
    chosen = _group(site, group)
    pods = [pod for pod in chosen.pods if rank is None or pod.metadata.labels.get(RANK) == str(rank)] if chosen else []
    if not pods:
        known = ", ".join(sorted(pod.metadata.labels.get(RANK, "?") for pod in chosen.pods)) if chosen else ""
        wanted = f"rank {rank}; there are: {known}" if known else "any rank; nothing is served"
        raise InputError.single(site.cluster.name, f"found no pod of {wanted}", rule="no-such-rank")
    if follow and len(pods) > 1:
        raise InputError.single("--follow", "follows one rank: add --rank N (0 is the head)", rule="usage")
    for pod in pods:
        mark = f"[rank {pod.metadata.labels.get(RANK)}] " if len(pods) > 1 else ""
        yield from (mark + line for line in _lines(site.reached, pod.metadata.name, follow, previous))


def _group(site: Site, wanted: str | None) -> Observed | None:
    """The one that is named, or the only one that runs; None where nothing does."""
    runs = site.running
    names = ", ".join(one.name for one in runs)
    if wanted:
        chosen = site.one(wanted)
        if chosen.asleep and not chosen.pods:
            message = f"{chosen.name} is asleep and has no log; it wakes with the next request"
            raise InputError.single(site.cluster.name, message, rule="no-such-group")
        if not chosen.pods:
            beside = f"; these run: {names}" if runs else "; nothing runs here"
            raise InputError.single(site.cluster.name, f"{chosen.name} has no pod{beside}", rule="no-such-group")
        return chosen
    if len(runs) > 1:
        message = f"{len(runs)} groups run here: {names}; name one, as `sparkloom logs {runs[0].name}`"
        raise InputError.single(site.cluster.name, message, rule="which-group")
    return runs[0] if runs else None


def _lines(reached: Client, pod: str, follow: bool, previous: bool) -> Iterator[str]:
    from kubernetes.client import ApiException

    try:
        yield from reached.stream(pod, previous=previous, follow=follow)
    except ApiException as error:
        sys.stderr.write(f"{pod}: no such log ({error.reason})\n")
