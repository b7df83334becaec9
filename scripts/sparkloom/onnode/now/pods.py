"""One rank's pod as Kubernetes shows it, why it waits, and the rank in a line with its supervisor's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from sparkloom.onnode.now.labels import CONFIG_HASH, HOSTNAME, RANK

# A pod that stays in one of these does not get out of it by waiting.
STUCK = {
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff",
    "InvalidImageName", "RunContainerError", "Unschedulable",
}  # fmt: skip
MUTE = "its supervisor does not answer"
HOPELESS = {"refused", "down"}  # what a supervisor cannot mend itself, named once its budget was over


@dataclass(frozen=True, slots=True)
class State:
    """One rank as it is now."""

    rank: str
    pod: str
    node: str
    phase: str
    reason: str
    ready: bool
    restarts: int
    last_words: str = ""
    image: str = ""  # digest of what really runs
    phase_said: str = ""  # by the rank's supervisor
    said: str = ""
    uid: str = ""
    again: str = ""  # what rank 0 said of a failure that came twice since this wait began

    @property
    def word(self) -> str:
        """The reason's first; a pull that fails and one that waits to be tried again take turns, and are one."""
        return self.reason.partition(":")[0].replace("ErrImagePull", "ImagePullBackOff")


def state(pod: Any) -> State:
    """What Kubernetes says about a pod, in one word where it has one."""
    statuses = pod.status.container_statuses or []
    engine = statuses[0] if statuses else None
    unplaced = _condition(pod, "PodScheduled", "False")
    reason = f"{unplaced.reason}: {unplaced.message}" if unplaced else ""
    if engine and (waiting := engine.state.waiting):
        reason = waiting.reason + (f": {waiting.message}" if waiting.message else "")
    if engine and engine.state.terminated:
        reason = f"exited {engine.state.terminated.exit_code}"
    return State(
        rank=pod.metadata.labels.get(RANK, "?"),
        pod=pod.metadata.name,
        node=pod.spec.node_name or "no node",
        phase=pod.status.phase,
        reason=reason,
        ready=bool(engine and engine.ready),
        restarts=engine.restart_count if engine else 0,
        last_words=_last_words(engine),
        image=getattr(engine, "image_id", "") or "",
        uid=str(getattr(pod.metadata, "uid", "") or pod.metadata.name),
    )


def _condition(one: Any, kind: str, status: str) -> Any:
    """Of a pod or a node; None where it does not say so."""
    said = one.status.conditions or ()
    return next((c for c in said if (c.type, c.status) == (kind, status)), None)


def _last_words(engine: Any) -> str:
    """What the container said before it last ended, as the kubelet kept it."""
    for ended in (engine.state, engine.last_state) if engine else ():
        if ended and ended.terminated and ended.terminated.message:
            return str(ended.terminated.message)
    return ""


def since(pods: Iterable[Any]) -> str:
    """When the last rank became ready: a run that changes nothing does not change it either."""
    told = [_condition(pod, "Ready", "True") for pod in pods]
    times = [one.last_transition_time for one in told if one and one.last_transition_time]
    return utc(max(times)) if times else ""


def utc(time: datetime) -> str:
    return time.astimezone(timezone.utc).isoformat(timespec="seconds")  # noqa: UP017 - 3.10


def ready(one: Any) -> bool:
    """Whether a pod is Ready; or a node, from which the cluster hears then."""
    return _condition(one, "Ready", "True") is not None


def unready_since(node: Any) -> str:
    """Empty for a node that is Ready."""
    told = (c for c in node.status.conditions or [] if c.type == "Ready" and c.status != "True")
    return next((utc(c.last_transition_time) for c in told if c.last_transition_time), "")


ATTACHMENT = re.compile(r"network-attachment-definition(?:s\S*)? ?[(\"]+([\w.-]+)")
FILES = re.compile(r"(configmap|secret)s? \"([\w.-]+)\" not found", re.I)
LINK = re.compile(r"(?:Link not found|failed to find host device|no net directory)[^\n]*", re.I)
PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
KINDS = {"configmap": "ConfigMap", "secret": "Secret"}
LONGEST = 240


def waits(
    pod: Any,
    warnings: Mapping[str, str],
    nodes: Mapping[str, Mapping[str, Any]],
    named: str = "playbooks/serve.yml brings it anew, if engine.image in the profile is right",
) -> str:
    """Empty for a pod that has nothing to wait for. `warnings`: the last one of each object, by its name;
    `named`: where its image is."""
    where = place(pod)
    if gone := away(where, nodes):
        return gone
    engine = (pod.status.container_statuses or [None])[0]
    if engine and not engine.state.waiting:
        return ""
    told = warnings.get(str(pod.metadata.name), "")
    if engine and engine.state.waiting.reason in PULL:
        words = _short(engine.state.waiting.message or told or engine.state.waiting.reason)
        image = pod.spec.containers[0].image
        return f"its image {image} does not come to {where}: {words}; {named}"
    return explained(told, where) or _unplaced(pod, where)


def place(pod: Any) -> str:
    return str(pod.spec.node_name or (pod.spec.node_selector or {}).get(HOSTNAME) or "any node")


def away(place: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Of a node, why no pod can be there; empty where one can."""
    known = nodes.get(place)
    if nodes and known is None:
        return f"its node {place} is not in the cluster; kubernetes_node in hosts.yml, playbooks/cluster.yml"
    if known and (not known["ready"] or known.get("away_since")):
        how = "says nothing" if known["ready"] else "is not Ready"
        since = f" since {known['away_since']}" if known.get("away_since") else ""
        return f"its node {place} {how}{since}: is it switched on? kubectl describe node {place}"
    return ""


def explained(told: str, place: str) -> str:
    """One event's message; empty for none."""
    if found := ATTACHMENT.search(told):
        return f"the attachment {found[1]} is not in the cluster; playbooks/network.yml makes it"
    if found := FILES.search(told):
        return f"the {KINDS[found[1].lower()]} {found[2]} is not in the cluster; playbooks/serve.yml makes it"
    if found := LINK.search(told):
        return f"a rail's function is not on {place}: {_short(found[0])}; playbooks/fabric.yml puts it there"
    return _short(told)


def _unplaced(pod: Any, place: str) -> str:
    if unplaced := _condition(pod, "PodScheduled", "False"):
        return f"no room for it on {place}: {_short(unplaced.message or unplaced.reason)}"
    return ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST // 3]} ... {flat[-LONGEST // 2 :]}"


TOLD = ("phase", "text", "cause", "epoch", "transport", "serving", "rails", "read")
Rank = dict[str, Any]


def row(pod: Any, state: State, told: Mapping[str, Any] | None, waits: str) -> Rank:
    """`told`: what its supervisor says of itself; `waits`: why its pod waits, where it does."""
    seen = asdict(state)
    shown = {key: seen[key] for key in ("rank", "node", "pod", "ready", "restarts")}
    shown["config_hash"] = (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
    shown["state"] = "ready" if seen["ready"] else state.word or seen["phase"].lower()
    last = seen["last_words"].strip().splitlines()
    shown["cause"] = waits or (last[-1] if last and seen["phase"] != "Pending" else "")
    shown["supervisor"] = {key: told.get(key) for key in TOLD} if told else None
    if told:
        shown["cause"] = waits or cause(told)
        shown["state"] = "ready" if seen["ready"] else str(told.get("phase"))
    return shown


def cause(told: Mapping[str, Any]) -> str:
    """What is wrong now; of an epoch that is over it says so."""
    if told.get("rails"):
        return str(told["rails"][0])
    named, begun = str(told.get("cause") or ""), told.get("cause_phase") == "failed"
    return f"epoch {told['cause_epoch']} ended: {named}" if named and begun and "cause_epoch" in told else named


def absent(planned: Mapping[str, Any], warnings: Mapping[str, str], group: str = "") -> Rank:
    """`group`: what its objects begin with, where another group's ranks of the same number may have events too."""
    name = f"{group}-rank{planned['rank']}"
    told = next((text for of, text in warnings.items() if (of == name if group else of.endswith(name))), "")
    why_not = explained(told, str(planned["node"])) or "playbooks/serve.yml makes it again"
    return {
        "rank": str(planned["rank"]), "node": str(planned["node"]), "pod": "", "ready": False, "restarts": 0,
        "config_hash": "", "state": "no pod", "cause": why_not, "supervisor": None,
    }  # fmt: skip


def order(rank: Rank) -> int:
    return int(rank["rank"]) if rank["rank"].isdigit() else 99
