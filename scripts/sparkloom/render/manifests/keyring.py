"""How rank 0 gets the engine's own key and the clients': files out of two Secrets.

The engine's own option names the first, and reads it once. The supervisor reads the second at each question: it is a
whole folder, so that the kubelet renews it while the pod runs.
They are made by playbooks/serve.yml and are no part of what is rendered. `sparkloom show argv` shows the engine's line
without the words that name the first: they are the pod's, as the mount is.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.onnode.rank import clients
from sparkloom.render import keys


def words(launch: Launch, rank: Rank) -> tuple[str, ...]:
    return () if rank.index else engines.get(launch.engine).key_words


def secret(launch: Launch) -> str:
    """The engine's own key: each group of a fleet has one of its own."""
    return launch.seat.engine_key if launch.seat else keys.SECRET


def volume(launch: Launch, rank: Rank) -> list[dict[str, Any]]:
    kept = {"key": secret(launch), "clients": keys.CLIENTS}
    if rank.index:
        return []
    return [{"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}} for name, secret in kept.items()]


def mount(rank: Rank) -> list[dict[str, Any]]:
    places = {"key": base.KEY_FOLDER, "clients": str(PurePosixPath(clients.PLACE).parent)}
    if rank.index:
        return []
    return [{"name": name, "mountPath": place, "readOnly": True} for name, place in places.items()]
