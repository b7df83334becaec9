"""What objects are called and how they are found again."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from sparkloom.inputs.group_name import label as group
from sparkloom.launch.resolve import Launch
from sparkloom.onnode.now.labels import CONFIG_HASH, ENGINES, PART_OF, PROFILE, RANK

__all__ = ["CONFIG_HASH", "ENGINES", "PART_OF", "PROFILE", "RANK", "group"]  # others' words that are had here too

PRIORITY = "sparkloom-engine"  # the engines' PriorityClass
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def rank(launch: Launch, index: int) -> str:
    return f"{group(launch.group)}-rank{index}"


def marked(name: str) -> str:
    """The value of the label by which all objects of a group are found."""
    return name if _LABEL.fullmatch(name) else group(name)


def selector(launch: Launch, index: int | None = None) -> dict[str, str]:
    """Labels that pick the group's pods, or those of one rank; they never change for a running workload."""
    chosen = {PROFILE: marked(launch.group)}
    return chosen if index is None else {**chosen, RANK: str(index)}


def labels(launch: Launch, index: int | None = None) -> dict[str, str]:
    described = {
        "app.kubernetes.io/name": launch.engine,
        "app.kubernetes.io/instance": group(launch.group),
        **ENGINES,
    }
    return {**described, **selector(launch, index)}


def manifest(api: str, kind: str, metadata: dict[str, Any], **content: Any) -> dict[str, Any]:
    """One object as the API server takes it; `content` is mostly its spec."""
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}


def read_at_start(*texts: str) -> dict[str, str]:
    """A pod's annotation with a hash over what it reads only then: with other texts it is another pod."""
    return {CONFIG_HASH: hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]}


def metadata(launch: Launch, namespace: str, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": labels(launch)}
