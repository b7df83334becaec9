"""Who of two of these programs decides, while one takes over from another: the holder of a Lease.

The one that does not hold it holds requests, and passes them on, as the other does; it only changes nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from sparkloom.onnode.kube import JSON, Refused, Unreached
from sparkloom.onnode.stopping import Reached

NAME = "waker"
LASTS = 15.0  # seconds without a renewal, then another one may take it
SURE = 9.0  # seconds after a renewal in which its holder acts: a change takes the rest at most
CONFLICT, MISSING = 409, 404


class Lease:
    def __init__(self, reached: Reached, namespace: str, me: str, clock: Callable[[], float]) -> None:
        self.reached, self.me, self.clock = reached, me, clock
        self.path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}"
        self._renewed = float("-inf")
        self._seen: tuple[Any, ...] = ()
        self._since = 0.0
        self.released = False

    @property
    def mine(self) -> bool:
        return not self.released and self.clock() - self._renewed < SURE

    def renew(self) -> None:
        """By this clock alone: what another node's clock says of the last renewal is not gone by."""
        if self.released:
            return
        began = self.clock()
        found = self._read()
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        seen = (holder, found["metadata"].get("resourceVersion"))
        if seen != self._seen:
            self._seen, self._since = seen, began
        if holder in ("", self.me) or began - self._since > LASTS:
            self._write(found, self.me)
            self._renewed = began if not self.released else float("-inf")

    def release(self) -> None:
        """At once, so that the next one need not wait."""
        self.released = True
        with contextlib.suppress(Unreached):  # it ends by itself
            found = self._read()
            if (found.get("spec") or {}).get("holderIdentity") == self.me:
                self._write(found, "")

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self.reached.api(self.path, {}, JSON)
        except Refused as error:
            if error.status == MISSING:
                raise Unreached(f"Lease {NAME} is not there; playbooks/gateway.yml makes it") from None
            raise
        return found

    def _write(self, found: dict[str, Any], holder: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": holder, "leaseDurationSeconds": int(LASTS), "renewTime": now}
        try:
            self.reached.change("PUT", self.path, {**found, "spec": spec})
        except Refused as error:
            if error.status != CONFLICT:  # another one was faster
                raise
            self._renewed = float("-inf")
            raise Unreached("another one of these took the Lease just now") from None
