"""One node's containerd: asked for an image, or told to pull, to import or to build one.

The images' program does it there. A pull and a build go on when the connection is lost, and are found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sparkloom.base import amount
from sparkloom.site import client, images
from sparkloom.site.ansible import Context, Data
from sparkloom.site.image_transfer import Transfer
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote

Asked = Mapping[str, Any]  # the image, and where containerd may be


def ask(
    context: Context,
    # What it has of one image, of several, or of one of ours; or whether there is room for a build.
    question: Literal["look", "held", "built", "judge"],
    asked: Asked,
) -> Data:
    """A dry run leaves no program there."""
    return {"answer": Remote.of(context, "images").ask(question, dict(asked), bring=not context.dry)}


def hold(
    context: Context,
    asked: Asked,
    digest: str,  # under which it can be named then
    retag: bool = False,  # whether the tag is made to mean it too
    serves: bool = False,  # for a group, and no longer than one has it
) -> Data:
    answer = Remote.of(context, "images").ask("hold", {**asked, "digest": digest, "retag": retag, "serves": serves})
    return {"changed": bool(answer["changed"])}


def release(
    context: Context,
    runtimes: Sequence[Data] = (),  # where containerd may be, unless where it usually is
) -> Data:
    """Leave the images that no group has to the kubelet; one that sleeps or is stopped has its own."""
    kept = {str(one.spec.template.spec.containers[0].image) for one in client.of(context.cluster).engine_sets()}
    asked = {"images": sorted(kept), "places": list(runtimes) or list(images.PLACES)}
    answer = Remote.of(context, "images").ask("release", asked)
    return {"changed": bool(answer["changed"]), "msg": ", ".join(answer["changed"])}


def take(
    context: Context,
    asked: Asked,
    file: str,  # an archive that lies on the node
    seconds: float,  # how long it may take
) -> Data:
    transfer = Transfer(Remote.of(context, "images"), asked["places"], seconds, context.say)
    return {"changed": True, "msg": transfer.take(file, [{"image": asked["image"], "digest": ""}])}


def bring(
    context: Context,
    asked: Asked,
    seconds: float,  # how long each archive may take
    archives: Sequence[Data] = (),  # what `archives.decide` gave for this node
) -> Data:
    transfer = Transfer(Remote.of(context, "images"), asked["places"], seconds, context.say)
    for archive in () if context.dry else archives:
        context.say(transfer.bring(archive))
    return {"changed": bool(archives), "msg": ", ".join(archive["file"] for archive in archives)}


def pull(
    context: Context,
    asked: Asked,
    seconds: float,  # how long it may take
    reference: str = "",  # what is pulled; empty where nothing is missing
) -> Data:
    """What the node has of the image then."""
    remote, measured = Remote.of(context, "images"), dict[str, float]()
    if reference:
        clock, wanted = follow.Clock(seconds), {**asked, "reference": reference}
        remote.ask("start", wanted)
        status = clock.watch(remote, "status", wanted, context.say)
        text = follow.pulled(remote.node, reference, status, clock.passed)
        if status["state"] != "done":
            return {"failed": True, "msg": text}
        context.say(text)
        measured = follow.measured(f"image {asked['image']}", status["moved"], clock.passed)
    return {"changed": bool(reference), "measured": measured, "answer": remote.ask("look", dict(asked))}


def build(
    context: Context,
    asked: Asked,
    seconds: float,  # how long it may take
) -> Data:
    """An archive of the image, for the nodes to hand on."""
    remote = Remote.of(context, "images")
    clock = follow.Clock(seconds, "image_build_seconds", "the build")
    remote.ask("build", dict(asked))
    quiet = {**asked, "context": {}}
    status = clock.watch(remote, "building", quiet, context.say)
    if status["state"] != "done":
        cause = status.get("cause") or "the build is gone; run this again"
        return {"failed": True, "msg": f"{remote.node}: {asked['image']} cannot be built: {cause}"}
    made = dict(remote.ask("publish", quiet))
    passed, size = amount.span(clock.passed), made["size"] / 1e9
    text = f"{remote.node}: {asked['image']} is built, an archive of {size:.1f} GB, in {passed}"
    context.say(text)
    return {"changed": True, "msg": text, **made}
