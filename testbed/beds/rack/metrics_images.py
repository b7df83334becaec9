"""The node-exporter's image on the rack's nodes, which playbooks/metrics.yml runs on each of them."""

from __future__ import annotations

from dataclasses import replace

from testbed.base import docker, names
from testbed.base.steps import Say, Step
from testbed.beds.rack import load
from testbed.make import oci, prometheus, rootfs


def _there() -> bool:
    """By name and by what is in it: another build replaces it."""
    archive, states = prometheus.EXPORTER.archive(), docker.containers()
    if not archive.is_file() or any(states.get(node) != "running" for node in names.NODES.values()):
        return False
    wanted = oci.references(archive)
    return all(wanted.items() <= load.held(node).items() for node in names.NODES.values())


def _bring(say: Say) -> None:
    say("giving it to every node")
    load.load(prometheus.EXPORTER.archive())


def made() -> list[Step]:
    """Fetched and packed beside what compiles."""
    (fetched,), image = prometheus.steps(), prometheus.EXPORTER.step()
    after = (fetched.name, *(step.name for step in rootfs.steps()))
    return [replace(fetched, aside=True), replace(image, after=after, aside=True)]


def steps() -> list[Step]:
    title = "gives every node the node-exporter's image"
    return [Step("metrics-images", title, _there, _bring, after=(made()[-1].name,))]
