"""How rank 0 gets the API key: a file out of a Secret that the engine's own option names, or that its supervisor reads.

The Secret is made by playbooks/serve.yml and is no part of what is rendered. `sparkloom argv` shows the engine's line
without these two words: they are the pod's, as the mount is that they name.
"""

from __future__ import annotations

from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import keys


def words(launch: Launch, rank: Rank) -> tuple[str, ...]:
    return () if rank.index else engines.get(launch.engine).key_words


def volume(rank: Rank) -> list[dict[str, Any]]:
    secret = {"secretName": keys.SECRET, "defaultMode": 0o440}
    return [] if rank.index else [{"name": "key", "secret": secret}]


def mount(rank: Rank) -> list[dict[str, Any]]:
    return [] if rank.index else [{"name": "key", "mountPath": base.KEY_FOLDER, "readOnly": True}]
