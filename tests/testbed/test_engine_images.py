"""Which images the stand-in is packed under: all that shipped profiles name, or those of what is about to be served."""

from __future__ import annotations

from sparkloom.inputs import profile
from sparkloom.onnode.images import reference
from testbed.make import engine_image

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def test_every_shipped_profile_has_its_image() -> None:
    packed = {image.reference for image in engine_image.wanted()}
    asked = {reference.parse(profile.load(name).profile.engine.image).tagged for name in profile.names()}
    assert asked == packed  # as containerd keeps them: a pod that asks for `name` finds no `docker.io/name`
    assert all("." in name.split("/")[0] or name.startswith("localhost/") for name in packed), packed


def test_one_profile_needs_one_image_and_no_other_release() -> None:
    """A demo that serves two models fetched the wheels of all engines' releases."""
    (image,) = engine_image.wanted((ULTRA,))
    assert (image.engine, image.release) == ("sglang", "0.5.12")
    assert engine_image.archive((ULTRA,)).parent.name.startswith("engine-images-chosen-")
    assert engine_image.archive((ULTRA,)) != engine_image.archive()
