"""Traefik on the rack, as K3s has it on a Spark: the step that brings it and makes sure that it runs."""

from __future__ import annotations

import json

from testbed.base import store
from testbed.base.steps import Say, Step
from testbed.beds.rack import cluster, load, traefik_objects
from testbed.make import traefik, traefik_source

WAIT = 120
SPACE = ("-n", traefik_objects.SPACE)
MADE_OF = "testbed/made-of"


def recipe() -> str:
    """Another build, or other objects, replace what is there."""
    return store.key_of([traefik.place().name, json.dumps(traefik_objects.objects(), sort_keys=True)])


def _there() -> bool:
    asked = (
        "get",
        f"deployment/{traefik_objects.NAME}",
        f"service/{traefik_objects.NAME}",
        "-o",
        "json",
        "--ignore-not-found",
    )
    objects = json.loads(cluster.kubectl(*SPACE, *asked, check=False) or "{}").get("items", [])
    if len(objects) != 2:
        return False
    deployment, service = sorted(objects, key=lambda item: str(item["kind"]))
    current = deployment["metadata"].get("annotations", {}).get(MADE_OF) == recipe()
    reached = [entry.get("ip") for entry in service["status"].get("loadBalancer", {}).get("ingress", [])]
    ready = deployment["status"].get("readyReplicas") == 1
    return current and ready and reached == [cluster.nodes()[traefik_objects.NODE]["ip"]]


def _bring(say: Say) -> None:
    say("giving its image to the first node")
    load.load(traefik.archive(), ["spark1"])
    say("its definitions, its account, its pod")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(traefik.definitions()))
    made = traefik_objects.objects()
    for item in made:
        item["metadata"].setdefault("annotations", {})[MADE_OF] = recipe()
    listed = {"apiVersion": "v1", "kind": "List", "items": made}
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(listed))
    cluster.kubectl("wait", "--for=condition=Established", "crd/ingressroutes.traefik.io", f"--timeout={WAIT}s")
    cluster.kubectl(*SPACE, "rollout", "status", f"deployment/{traefik_objects.NAME}", f"--timeout={WAIT}s")
    address = cluster.nodes()[traefik_objects.NODE]["ip"]
    status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}})
    cluster.kubectl(
        *SPACE, "patch", "service", traefik_objects.NAME, "--subresource=status", "--type=merge", "-p", status
    )
    say(f"Traefik {traefik_source.VERSION} at https://{address}")


def steps() -> list[Step]:
    return [Step("endpoint", "starts Traefik, which K3s brings with it", _there, _bring)]
