"""The node-exporter's image on the rack's nodes, which playbooks/metrics.yml runs on each of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from testbed.base.steps import Say, Step
from testbed.beds.rack import load
from testbed.make import prometheus, rootfs


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
    there = partial(load.is_everywhere, prometheus.EXPORTER.archive())
    return [Step("metrics-images", title, there, _bring, after=(made()[-1].name,))]
