"""What starts groups that are on demand: which these are says the inventory's list, and which run the cluster."""

from __future__ import annotations

from sparkloom.base.errors import InputError
from sparkloom.render.manifests import waker as objects
from sparkloom.site import ansible, client, waker
from sparkloom.site.ansible import Context, Data


def give(context: Context, image: str) -> Data:
    """Plans its objects, with an image that has Python; there are none where no group that is set up is on demand."""
    found, runs = waker.demanded(context.cluster, ansible.listed(context.vars))
    if not found:
        return {"objects": [], "msg": "no group is on demand"}
    if not image:
        message = "nothing says which image; expected one with Python, as page_image in inventories/gb10 has it"
        raise InputError.single("gateway_waker_image", message, rule="missing-key")
    reached = client.of(context.cluster)
    found = waker.timed(reached, found, runs)
    planned = objects.waker(image, context.cluster, found, reached.api_addresses())
    return {"objects": planned, "msg": f"on demand: {', '.join(group.name for group in found)}"}
