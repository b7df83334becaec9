"""One image for all nodes: which digest is launched, who pulls it, and when two nodes or two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.image_recipes import HOST
from sparkloom.inputs.lock_file import Image
from sparkloom.onnode.images import reference
from sparkloom.render.k3s import paths

# Where a containerd may be: K3s' own first, then the system's.
PLACES = (
    {
        "socket": "/run/k3s/containerd/containerd.sock",
        "program": paths.BINARY,
        "root": f"{paths.DATA}/agent/containerd",
    },
    {"socket": "/run/containerd/containerd.sock", "program": "", "root": "/var/lib/containerd"},
)
NEW = "new"  # take what the tag means now
Held = Mapping[str, Mapping[str, Any]]  # node -> what `images look` answered


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a launch asks for, and what the site has said of it."""

    image: str  # the profile's name:tag, or name@digest
    entry: Image | None = None  # of the lock file
    take: str = ""  # the person's word: a digest, or NEW
    file: str = ""  # the lock file, for messages

    @property
    def locked(self) -> str:
        return self.entry.digest if self.entry and not self.take and "@" not in self.image else ""

    @property
    def given(self) -> str:
        """A digest that is not the tag's to decide."""
        return reference.parse(self.image).digest or (self.take if self.take != NEW else "") or self.locked


@dataclass(frozen=True, slots=True)
class Decision:
    digest: str = ""  # empty: nobody knows it yet
    pulls: dict[str, str] = field(default_factory=dict)  # node -> what it pulls, of a registry or of the other nodes
    refusal: str = ""
    build: bool = False  # of one of ours: no node has it
    note: str = ""


def wanted(image: str, lock: Mapping[str, Image], take: str, file: str) -> Wanted:
    if take not in ("", NEW) and not reference.DIGEST.fullmatch(take):
        message = f"'{take}' is neither a digest (sha256: and 64 hex digits) nor '{NEW}'"
        raise InputError.single("serve_image", message, rule="bad-digest")
    return Wanted(image, lock.get(reference.parse(image).tagged), take, file)


def decide(asked: Wanted, held: Held, *, may_pull: bool) -> Decision:
    """From what lies on the nodes: the digest that all launch, and who has to pull it."""
    tags = {node: str(told["tag"]) for node, told in held.items() if told["tag"]}
    if refusal := _differing(asked, tags):
        return Decision(refusal=refusal)
    digest = asked.given or next(iter(tags.values()), "")
    name = reference.parse(asked.image)
    pulls = {
        node: name.at(digest) if digest else name.tagged
        for node, told in held.items()
        if not (digest and digest in told["digests"])
    }
    if not digest and name.name.startswith(f"{HOST}/"):
        return Decision(refusal=_unbuilt(asked))
    if pulls and not may_pull:
        return Decision(digest, refusal=_missing(asked, pulls))
    return Decision(digest, pulls)


def settle(asked: Wanted, decision: Decision, held: Held) -> Decision:
    """After the pulls: every node must have found the same."""
    if decision.digest:
        lacking = {node: "" for node, told in held.items() if decision.digest not in told["digests"]}
        return Decision(decision.digest, refusal=_missing(asked, lacking) if lacking else "")
    tags = {node: str(told["tag"]) for node, told in held.items()}
    if refusal := _differing(asked, tags) or (_missing(asked, tags) if not all(tags.values()) else ""):
        return Decision(refusal=refusal)
    return Decision(next(iter(tags.values())))


def entry(asked: Wanted, digest: str, held: Held, when: str) -> Image:
    """For the lock file; the node that had it first, in the inventory's order."""
    spelled, tag = asked.image, reference.parse(asked.image).tag
    finder = next((node for node, told in held.items() if digest in told["digests"]), "")
    return Image(spelled.removesuffix(f":{tag}"), tag, digest, when, finder)


def _differing(asked: Wanted, tags: Mapping[str, str]) -> str:
    """Two nodes, or this run and the one that locked it, mean different images by one tag."""
    if "@" in asked.image or (asked.take and asked.take != NEW):
        return ""  # somebody said which
    found = {digest: [node for node, held in tags.items() if held == digest] for digest in dict.fromkeys(tags.values())}
    told = "; ".join(f"{digest} on {', '.join(nodes)}" for digest, nodes in found.items())
    ways = [f"-e serve_image={digest}" for digest in dict.fromkeys([*([asked.locked] if asked.locked else []), *found])]
    if asked.locked and asked.entry and set(found) - {asked.locked}:
        since = f"{asked.entry.when}, found on {asked.entry.node}"
        locked = f"{asked.image} is locked as {asked.locked} ({since}; {asked.file})"
        return f"{locked}, and its tag now means {told}. Say which one serves: {' or '.join(ways)}"
    if len(found) > 1:
        cure = f"Say which one serves, the others pull it: {' or '.join(ways)}"
        return f"{asked.image} is not the same on every node: {told}. {cure}"
    return ""


def _missing(asked: Wanted, nodes: Mapping[str, str]) -> str:
    wanted = next((text for text in nodes.values() if text), asked.image)
    found = f"{wanted} is missing on {', '.join(nodes)}, and nothing is pulled (model_serving_pull)"
    save = f"`docker save` or `ctr images export` on a machine that has {asked.image}"
    load = f"`sudo k3s ctr -n k8s.io images import FILE`, or its archive in {paths.IMAGES} and K3s restarted"
    return f"{found}. Bring it: {save}, then on each node {load}"


def _unbuilt(asked: Wanted) -> str:
    """No registry can have it: a pull would ask until the kubelet gives up."""
    cure = "`sparkloom image build` makes it of its recipe on one Spark and brings it to all"
    return f"{asked.image} is on none of the nodes, and only a build gives it: {cure}"


def announcement(asked: Wanted, decided: Decision) -> str:
    """One line before the pulls."""
    if not decided.pulls:
        return f"{asked.image} is on every node as {decided.digest}"
    return f"{', '.join(decided.pulls)}: {next(iter(decided.pulls.values()))} is pulled"
