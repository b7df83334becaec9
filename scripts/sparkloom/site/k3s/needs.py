"""Which images a site's nodes take beside K3s' own, where no registry gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkloom.inputs import lock_file
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.image_recipes import HOST
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import resolve
from sparkloom.onnode.images import reference
from sparkloom.render.k3s import machines
from sparkloom.render.k3s.options import Options
from sparkloom.site import images
from sparkloom.site.image_archives import Need
from sparkloom.site.k3s import judge


def every(options: Options, cluster: Cluster, ours: Mapping[str, str], engines: Sequence[Need]) -> list[Need]:
    """`ours`: images by the variables that name them, empty where a site has none.

    Nothing where registries are asked, or one of the site's gives all.
    """
    if not options.artifacts or options.images_from == "registries":
        return []
    sparks = tuple(node.name for node in cluster.nodes)
    daemons = machines.members(cluster) if ours["multus_image"] and cluster.fabric.rails else []
    where = {
        "multus_image": tuple(member.name for member in daemons),
        "gpu_runtime_image": sparks if cluster.expect_gb10 else (),
        "gateway_router_image": sparks,
    }
    found = [
        Need(image, reference.parse(image).digest, where[variable], variable)
        for variable, image in ours.items()
        if image and where[variable]
    ]
    # what is built here cannot come before the cluster that it is built for
    return [need for need in [*found, *engines] if not judge.mirrored(options, need.image) and not _built(need.image)]


def _built(image: str) -> bool:
    return image.startswith(f"{HOST}/")


def engine(loaded: LoadedProfile, nodes: Sequence[str], take: str, lock: Path) -> Need:
    """`take`: a digest that somebody chose for it."""
    image = resolve.image_reference(loaded)
    wanted = images.wanted(image, lock_file.read(lock, lock_file.Image), take, str(lock))
    return Need(image, wanted.given, tuple(nodes), f"profile {loaded.name}")
