"""What profiles that serve no more left in the cluster: Services that answer nobody, settings, secrets, policies.

A label tells whose an object is, so nothing is guessed by name. A group whose StatefulSets stand keeps everything.
"""

from __future__ import annotations

from collections.abc import Collection

from sparkloom.render.manifests import names
from sparkloom.site.client import Client, selector
from sparkloom.site.objects import GONE, Taker


def take(reached: Client, kept: Collection[str], *, dry: bool = False) -> list[str]:
    """Kind and name of all that is gone, or would be; `kept` are the labels of the groups that there are to be."""
    taker = Taker.of(reached, dry=dry)
    where = {"namespace": reached.namespace}
    not_kept = [f"{names.PROFILE}!={label}" for label in sorted(kept)]
    others = ",".join([selector(names.ENGINES), names.PROFILE, *not_kept])
    sets = taker.found(("apps/v1", "StatefulSet"), labels=others, **where)
    standing = {one.metadata.labels[names.PROFILE] for one in sets}
    for kind in GONE["leftovers"]:
        found = taker.found(kind, labels=others, **where)
        taker.delete(kind, [one for one in found if one.metadata.labels[names.PROFILE] not in standing])
    return taker.gone
