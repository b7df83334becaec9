"""Small files inside the pods, from one ConfigMap per group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names

# NCCL reads this file from the image for every variable that the environment leaves open (the GID index
# among them). An empty one in its place keeps the image from deciding.
NCCL_CONF = {"/etc/nccl.conf": "# empty on purpose: what NCCL is told stands in the pod's environment\n"}


def contents(launch: Launch) -> dict[str, str]:
    """Path in the pod -> text."""
    return {**launch.files, **(NCCL_CONF if launch.fabric else {})}


def name(launch: Launch) -> str:
    return f"{names.group(launch.group)}-files"


def key(path: str) -> str:
    return path.strip("/").replace("/", "-")


def mapped(launch: Launch, namespace: str, name: str, texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Files as one ConfigMap, whose keys have no slashes; none without files."""
    data = {key(path): text for path, text in texts.items()}
    metadata = names.metadata(launch, namespace, name)
    return [names.manifest("v1", "ConfigMap", metadata, data=data)] if data else []


def as_json(data: dict[str, Any]) -> str:
    """JSON with one line per key."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()) + "\n}\n"
