"""What the ranks of one group know each other by: a Secret, in each rank's pod one file that its owner alone reads.

The Secret is made by playbooks/serve.yml and is no part of what is rendered; nobody but the ranks needs what is in it.
"""

from __future__ import annotations

from typing import Any

from sparkloom.launch.resolve import Launch
from sparkloom.render import keys
from sparkloom.render.manifests import names

FOLDER = "/sparkloom/group"


def name(launch: Launch) -> str:
    """Empty for one rank, which has nobody to know."""
    return f"{names.group(launch.group)}-group" if len(launch.ranks) > 1 else ""


def path(launch: Launch) -> str:
    return f"{FOLDER}/{keys.GROUP_FILE}" if name(launch) else ""


def wanted(launch: Launch) -> dict[str, Any]:
    """For who makes it; the labels say whose it is when the profile serves no more."""
    return {"name": name(launch), "labels": names.labels(launch)} if name(launch) else {}


def volume(launch: Launch) -> list[dict[str, Any]]:
    secret = {"secretName": name(launch), "defaultMode": 0o400}
    return [{"name": "group", "secret": secret}] if name(launch) else []


def mount(launch: Launch) -> list[dict[str, Any]]:
    return [{"name": "group", "mountPath": FOLDER, "readOnly": True}] if name(launch) else []
