"""Which images a site's nodes take beside K3s' own, where no registry gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Engine:
    """Whose image, and on which Sparks."""

    loaded: LoadedProfile
    nodes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """The variables that name images; empty where a site has none."""

    multus: str
    gpu: str
    router: str  # where the site has one
    engines: Sequence[Engine]
    take: str  # a digest that somebody chose for the engine's
    lock: Path


def every(options: Options, cluster: Cluster, asked: Asked) -> list[Need]:
    """Nothing where registries are asked, or one of the site's gives all."""
    if not options.artifacts or options.images_from == "registries":
        return []
    sparks = tuple(node.name for node in cluster.nodes)
    found = []
    if asked.multus and cluster.fabric.rails:
        everywhere = tuple(member.name for member in machines.members(cluster))
        found.append(Need(asked.multus, reference.parse(asked.multus).digest, everywhere, "multus_image"))
    if asked.gpu and cluster.expect_gb10:
        found.append(Need(asked.gpu, reference.parse(asked.gpu).digest, sparks, "gpu_runtime_image"))
    if asked.router:
        found.append(Need(asked.router, reference.parse(asked.router).digest, sparks, "gateway_router_image"))
    found += [_engine(engine, asked) for engine in asked.engines]
    # what is built here cannot come before the cluster that it is built for
    return [need for need in found if not judge.mirrored(options, need.image) and not _built(need.image)]


def _built(image: str) -> bool:
    return image.startswith(f"{HOST}/")


def _engine(engine: Engine, asked: Asked) -> Need:
    image = resolve.image_reference(engine.loaded)
    wanted = images.wanted(image, lock_file.read(asked.lock, lock_file.Image), asked.take, str(asked.lock))
    return Need(image, wanted.given, tuple(engine.nodes), f"profile {engine.loaded.name}")
