"""Is the model of the profile whole on every node, does what runs equal what would be rendered, does it serve?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.launch import downloads
from sparkloom.onnode.now.groups import Shown

FETCH = "playbooks/models.yml brings and verifies it"
SERVE = "playbooks/serve.yml starts it and says why when it cannot"
RENEW = "playbooks/serve.yml makes its pod anew"
AWAY = "playbooks/serve.yml takes them away once it has proved what serves"


def weights(nodes: Sequence[str], checked: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """`checked`: what the store's own check said on each node."""
    for node in nodes:
        answers = checked.get(node, {}).get("answer")
        if answers is None:
            why = str(checked.get(node, {}).get("msg") or "not asked")
            yield Finding(node, "weights", why, "an answer of its store", "what it says; sparkloom doctor -v says more")
        for answer in answers or ():
            for problem in answer["problems"]:
                yield Finding(node, str(answer["id"]), problem, "whole and verified", FETCH)
    answered = {node: answers for node in nodes if (answers := checked.get(node, {}).get("answer"))}
    for node, found in downloads.disagreeing(answered).items():
        yield Finding(node, "weights", found, "the same files on every node", FETCH)


@dataclass(frozen=True, slots=True)
class Applied:
    """What should run: the profile, the hash that each pod carries and the one that each rank tells."""

    profile: str
    config_hash: str
    read: str = ""


def ranks(applied: Applied, group: Shown, others: Sequence[str], left: Sequence[str]) -> list[Finding]:
    """`group`: as a picture has it; `others` run instead, `left` is of none."""
    if group["state"] == "asleep":
        return []
    if group["state"] == "stopped":
        return [Finding("cluster", "model", group["word"], "it serves", "sparkloom start", "info")]
    if group["state"] in ("down", "gone"):
        found = f"{', '.join(others)} is there instead" if others else "nothing served"
        cure = f"playbooks/switch.yml -e profile={applied.profile} changes to it" if others else SERVE
        why = f"; {group['cause']}" if group["cause"] else ""
        return [Finding("cluster", "model", found + why, applied.profile, cure)]
    findings = [finding for rank in group["ranks"] for finding in _rank(rank, applied, group["word"])]
    return [*findings, *left_behind(left)]


def left_behind(left: Sequence[str]) -> Iterator[Finding]:
    """Objects of what has no pods any more."""
    if left:
        found = f"{len(left)} objects of profiles that serve no more: {', '.join(left[:4])}{', ...' * (len(left) > 4)}"
        yield Finding("cluster", "left behind", found, "none", AWAY, "warning")


def _rank(rank: Shown, applied: Applied, word: str) -> Iterator[Finding]:
    node, check, told = rank["node"], f"rank {rank['rank']}", rank["supervisor"] or {}
    if not rank["pod"]:
        yield Finding(node, check, f"the group {word}: no pod", "a pod", rank["cause"] or SERVE)
        return
    if rank["config_hash"] != applied.config_hash:
        yield Finding(node, check, f"config {rank['config_hash']}", f"config {applied.config_hash}", SERVE)
    elif told.get("read") and applied.read and told["read"] != applied.read:
        yield Finding(node, check, f"it read plan {told['read']}", f"plan {applied.read}", RENEW)
    for fault in told.get("rails") or ():
        yield Finding(node, check, fault, "every rail", "the cable or the switch's port; then it goes on by itself")
    if not rank["ready"]:
        why = f"the group {word}: not ready ({rank['state']}, {rank['restarts']} restarts)"
        log = f"kubectl logs {rank['pod']} shows why; sparkloom diagnose reads it"
        yield Finding(node, check, f"{why}: {rank['cause']}" if rank["cause"] else why, "ready", log)
    elif rank["restarts"]:
        log = "its log before: kubectl logs -p"
        yield Finding(node, check, f"{rank['restarts']} restarts", "none", log, "warning")
