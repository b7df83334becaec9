"""NetworkAttachmentDefinitions: one per rail and VF index in use, and the annotation that asks for them.

Nodes whose cable is in the same port share a definition, since a VF has the same place on the bus there: its name is
lost when a pod leaves it behind as net1. The address comes with each pod (`ips`), where static IPAM takes it from the
runtime configuration. host-device moves the link as it stands, with the host's MTU. Our own program comes behind it: it
lets only planned peers reach the pod, and sets what a pod that is not privileged may not (onnode/rails_table.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.launch.fabric import Attachment, Endpoint
from sparkloom.render import template

PRIVATE = "sparkloom-rails"  # roles/multus puts it among CNI's programs; without it no pod gets a rail
CNI_VERSION = "0.4.0"  # spoken by every release of the CNI plugins and of Multus since 2020


def definitions(cluster: Cluster) -> list[dict[str, Any]]:
    return [definition(attachment, cluster.namespace) for attachment in fabric.attachments(cluster)]


def definition(attachment: Attachment, namespace: str) -> dict[str, Any]:
    routes = [{"dst": network, "gw": gateway} for network, gateway in attachment.routes]
    plugin = {
        "type": "host-device",
        **({"kernelpath": attachment.place} if attachment.place else {"device": attachment.interface}),
        "capabilities": {"ips": True},
        # static IPAM takes routes from here also where the address comes from the runtime configuration
        "ipam": {"type": "static", **({"routes": routes} if routes else {})},
    }
    plugins = [plugin, *([{"type": PRIVATE, "mtu": attachment.mtu}] if attachment.private else [])]
    config = json.dumps({"cniVersion": CNI_VERSION, "name": attachment.name, "plugins": plugins})
    return template.one(
        "manifests/attachment",
        name=attachment.name,
        namespace=namespace,
        rail=attachment.rail,
        told_mtu=str(attachment.mtu),
        subnet=attachment.subnet,
        config=config,
    )


def annotation(endpoints: Iterable[Endpoint]) -> str:
    """Multus' list for one pod: rail order fixes net1, net2 on every rank."""
    return json.dumps(
        [
            {
                "name": endpoint.attachment,
                "interface": fabric.pod_interface(number),
                "ips": [endpoint.cidr],
            }
            for number, endpoint in enumerate(endpoints)
        ]
    )
