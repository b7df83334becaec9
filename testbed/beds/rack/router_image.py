"""Envoy's image on every node: the router of several models may start on any of them, and no registry is asked."""

from __future__ import annotations

from dataclasses import replace

from testbed.base.steps import Say, Step
from testbed.beds.rack import load
from testbed.make import envoy


def _bring(say: Say) -> None:
    say("giving it to every node")
    load.load(envoy.archive())


def made() -> list[Step]:
    """Its wheel is fetched, and packed, beside what compiles."""
    wheel, *base, image = envoy.image_steps()
    return [replace(wheel, aside=True), replace(image, after=(wheel.name, *(step.name for step in base)), aside=True)]


def steps() -> list[Step]:
    title = "gives every node the router of several models (Envoy)"
    there, after = lambda: load.is_everywhere(envoy.archive()), (made()[-1].name,)
    return [Step("router", title, there, _bring, after=after, aside=True)]
