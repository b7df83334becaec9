"""How rank 0 gets the API key: a file out of a Secret that the engine's own option names.

The Secret is made by playbooks/serve.yml and is no part of what is rendered. `sparkloom argv` shows the engine's line
without these two words: they are the pod's, as the mount is that they name.
"""

from __future__ import annotations

from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import keys


def _asked(launch: Launch, rank: Rank) -> bool:
    return rank.index == 0 and bool(engines.get(launch.engine).key_words)


def words(launch: Launch, rank: Rank) -> tuple[str, ...]:
    return engines.get(launch.engine).key_words if _asked(launch, rank) else ()


def volume(launch: Launch, rank: Rank) -> list[dict[str, Any]]:
    secret = {"secretName": keys.SECRET, "defaultMode": 0o440}
    return [{"name": "key", "secret": secret}] if _asked(launch, rank) else []


def mount(launch: Launch, rank: Rank) -> list[dict[str, Any]]:
    return [{"name": "key", "mountPath": base.KEY_FOLDER, "readOnly": True}] if _asked(launch, rank) else []
