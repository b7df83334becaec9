"""What a rank's pod gets of Secrets: what its group's ranks know each other by, and rank 0 the engine's own key.

Both Secrets are made by playbooks/serve.yml and are no part of what is rendered. `sparkloom show argv` shows the
engine's line without the words that name the key's file: they are the pod's, as the mount is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.render import keys
from sparkloom.render.manifests import names

GROUP_FOLDER = "/sparkloom/group"
Volume = tuple[dict[str, Any], list[dict[str, Any]]]  # of a pod, and where its container has it


def group_secret(launch: Launch) -> str:
    """Empty for one rank, which has nobody to know."""
    return f"{names.group(launch.group)}-group" if len(launch.ranks) > 1 else ""


def group_file(launch: Launch) -> str:
    return f"{GROUP_FOLDER}/{keys.GROUP_FILE}" if group_secret(launch) else ""


def engine_key(launch: Launch) -> str:
    """The Secret with the engine's own key: each group of a fleet has one of its own."""
    return launch.seat.engine_key if launch.seat else ONLY_KEY


def key_words(launch: Launch, rank: Rank) -> tuple[str, ...]:
    """The engine's option that names the key's file."""
    return () if rank.index else engines.get(launch.engine).key_words


def volumes(launch: Launch, rank: Rank) -> Iterator[Volume]:
    """Files that their owner alone reads."""
    if shared := group_secret(launch):
        secret = {"secretName": shared, "defaultMode": 0o400}
        yield {"name": "group", "secret": secret}, [{"mountPath": GROUP_FOLDER, "readOnly": True}]
    if rank.index == 0:
        secret = {"secretName": engine_key(launch), "defaultMode": 0o440}
        yield {"name": "key", "secret": secret}, [{"mountPath": base.KEY_FOLDER, "readOnly": True}]
