"""How rank 0 gets the engine's own key: files of a Secret, one of which the engine's own option names.

The Secret is made by playbooks/serve.yml and is no part of what is rendered. `sparkloom show argv` shows the engine's
line without the words that name the file: they are the pod's, as the mount is.
"""

from __future__ import annotations

from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import keys


def words(launch: Launch, rank: Rank) -> tuple[str, ...]:
    return () if rank.index else engines.get(launch.engine).key_words


def secret(launch: Launch) -> str:
    """The engine's own key: each group of a fleet has one of its own."""
    return launch.seat.engine_key if launch.seat else keys.SECRET


def volume(launch: Launch, rank: Rank) -> list[dict[str, Any]]:
    if rank.index:
        return []
    return [{"name": "key", "secret": {"secretName": secret(launch), "defaultMode": 0o440}}]


def mount(rank: Rank) -> list[dict[str, Any]]:
    return [] if rank.index else [{"name": "key", "mountPath": base.KEY_FOLDER, "readOnly": True}]
