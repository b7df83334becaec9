"""A new key of the clients: rank 0's supervisor takes it when the kubelet has renewed its file; nothing restarts."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkloom.base.errors import InputError
from sparkloom.onnode.rank import clients
from sparkloom.site.client import Client

LOOKED = "sparkloom/keys-given"  # an annotation: when the kubelet was told to look
PATIENCE = 180.0  # by itself a kubelet looks every 60 to 90 s
NUDGE, LOOK = 10.0, 1.0
SERVE = "playbooks/serve.yml -e profile=NAME serves one"


def wait(
    reached: Client,
    pod: str,
    key: str,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until the supervisor in `pod` knows this key and no other."""
    if not reached.has_pod(pod):
        raise InputError.single(pod, f"no such pod: the profile is not served; {SERVE}", rule="not-served")
    begun, wanted, nudged = clock(), [clients.name(key.encode())], float("-inf")
    while (told := reached.told(pod)) is None or told.get("clients") != wanted:
        if told is not None and "clients" not in told:
            message = (
                "its supervisor is of an older build, which takes no new key; playbooks/serve.yml renews the group"
            )
            raise InputError.single(pod, message, rule="older-build")
        waited = clock() - begun
        if waited > PATIENCE:
            held = "does not answer" if told is None else "still has another key"
            message = (
                f"{held} after {waited:.0f} s, expected the new one; its events say why: kubectl describe pod {pod}"
            )
            raise InputError.single(pod, message, rule="key-not-taken")
        if clock() - nudged >= NUDGE:
            say(f"{pod} has not read the new key yet ({waited:.0f} s of {PATIENCE:.0f} s); the old one still opens")
            reached.nudge(pod, LOOKED)
            nudged = clock()
        sleep(LOOK)
