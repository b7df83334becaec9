"""What starts groups that are on demand: which these are says the inventory's list, and which run the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from sparkloom.base.errors import InputError
from sparkloom.inputs import serving
from sparkloom.inputs.fleet_record import Running
from sparkloom.onnode.waker.state import Group
from sparkloom.render.manifests import waker as objects
from sparkloom.site import ansible, client, waker
from sparkloom.site.ansible import Context, Data
from sparkloom.site.groups import observed


def give(context: Context, image: str) -> Data:
    """Plans its objects, with an image that has Python; there are none where no group that is set up is on demand."""
    found, runs = _demanded(context)
    if not found:
        return {"objects": [], "msg": "no group is on demand"}
    if not image:
        message = "nothing says which image; expected one with Python, as page_image in inventories/gb10 has it"
        raise InputError.single("gateway_waker_image", message, rule="missing-key")
    reached = client.of(context.cluster)
    found = waker.timed(reached, found, runs)
    planned = objects.waker(image, context.cluster, found, reached.api_addresses())
    return {"objects": planned, "msg": f"on demand: {', '.join(group.name for group in found)}"}


def remove(context: Context) -> Data:
    """Takes away one that this site needs no more."""
    found, _ = _demanded(context)
    gone = [] if found else waker.take_away(client.of(context.cluster), dry=context.dry)
    left = [{"what": what, "found": "left over", "expected": "nothing"} for what in gone]
    return {"changed": bool(gone), "drift": left, "msg": ", ".join(gone) or "nothing is left over"}


def _demanded(context: Context) -> tuple[list[Group], Mapping[str, Running]]:
    cluster, told = context.cluster, ansible.listed(context.vars)
    listed = serving.from_vars(told, cluster) if told else None
    if not listed or not listed.demanded:  # a list without such groups costs no question
        return [], {}
    runs = observed.running(cluster)
    return waker.groups(listed, cluster, runs), runs
