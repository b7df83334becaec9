"""Which image all nodes launch, by what `image` answered on them; `keep` writes the lock beside the inventory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sparkloom.inputs import lock_file
from sparkloom.inputs import profile as profiles
from sparkloom.launch import downloads, resolve
from sparkloom.site import ansible, images
from sparkloom.site.ansible import Context, Data


def plan(
    context: Context,
    profile: str,  # whose image
    nodes: Sequence[str] = (),  # who serves it; the first Sparks unless told
    # Where containerd may be: `socket`, `root`, and `program` where one holds its tools.
    runtimes: Sequence[Data] = (),
) -> Data:
    """What to ask of whom."""
    loaded = profiles.load(profile)
    asked = {"image": resolve.image_reference(loaded), "places": list(runtimes) or list(images.PLACES)}
    return {"nodes": list(nodes) or downloads.nodes(loaded, context.cluster), "asked": asked}


def decide(
    context: Context,
    profile: str,
    answers: str,  # variable that the nodes registered from `image.ask`
    nodes: Sequence[str] = (),
    take: str = "",  # a digest instead of the locked one, or new
    pull: bool = True,  # whether a missing image is pulled
) -> Data:
    """Who pulls what."""
    asked, held = _held(context, profile, nodes, take, answers)
    decided = images.decide(asked, held, may_pull=pull)
    return {"digest": decided.digest, "pulls": decided.pulls} | _refused(decided, images.announcement(asked, decided))


def keep(
    context: Context,
    profile: str,
    answers: str,  # variable that the nodes registered from `image.pull`
    nodes: Sequence[str] = (),
    take: str = "",
    digest: str = "",  # what `decide` gave
) -> Data:
    """Refuses nodes that differ after the pulls, and locks the digest."""
    asked, held = _held(context, profile, nodes, take, answers)
    settled, file = images.settle(asked, images.Decision(digest), held), ansible.lock_file(context.vars)
    image = resolve.image_reference(profiles.load(profile))
    if settled.refusal or "@" in image:
        return {"digest": settled.digest} | _refused(settled, f"{image} on {', '.join(held)}")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    changed = lock_file.keep(file, images.entry(asked, settled.digest, held, when))
    return {"changed": changed, "digest": settled.digest, "msg": f"{image} is {settled.digest} ({file})"}


def _held(
    context: Context, profile: str, nodes: Sequence[str], take: str, answers: str
) -> tuple[images.Wanted, dict[str, Data]]:
    loaded, file = profiles.load(profile), ansible.lock_file(context.vars)
    registered = ansible.registered(context.vars, answers)
    serving = list(nodes) or downloads.nodes(loaded, context.cluster)
    held = {node: registered[node]["answer"] for node in serving if "answer" in registered.get(node, {})}
    return images.wanted(resolve.image_reference(loaded), lock_file.read(file, lock_file.Image), take, str(file)), held


def _refused(decided: images.Decision, passed: str) -> Data:
    return {"failed": bool(decided.refusal), "msg": decided.refusal or passed}
