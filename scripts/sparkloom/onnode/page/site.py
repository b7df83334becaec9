"""What the page changes in the cluster, and reads there beside its looks: keys, logs, and who did what."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sparkloom.onnode import key_table, stopping
from sparkloom.onnode.key_table import Entry
from sparkloom.onnode.kube import JSON
from sparkloom.onnode.now import gather

Given = Mapping[str, Any]  # what was asked for: an object of JSON, of which nothing is believed
Answer = dict[str, Any]
JOURNAL, LINES = "page-journal", "journal"  # a ConfigMap, and what is in it
KEPT = 500  # lines of it
LONGEST = 64 << 10  # bytes of one rank's log


class Reached(gather.Reached, stopping.Reached, Protocol):
    def text(self, path: str, query: Mapping[str, str]) -> str: ...


@dataclass(frozen=True)
class Site:
    """Only what was read is replaced: where somebody comes in between, the cluster's API answers 409."""

    reached: Reached
    namespace: str
    clock: Callable[[], float] = time.time

    @property
    def core(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    def read_keys(self) -> list[Entry]:
        return key_table.of_secret(self.reached.api(key_table.path(self.namespace), {}, JSON))

    def change_keys(self, change: Callable[[Sequence[Entry]], list[Entry]]) -> None:
        secret = self.reached.api(path := key_table.path(self.namespace), {}, JSON)
        written = key_table.text(change(key_table.of_secret(secret))).encode()
        data = {key_table.FILE: base64.b64encode(written).decode()}
        self.reached.change("PUT", path, {**secret, "data": data})

    def note(self, person: str, what: str) -> None:
        """Ahead of what is done: what cannot be written down is not done."""
        kept = self.reached.api(path := f"{self.core}/configmaps/{JOURNAL}", {}, JSON)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))
        lines = [*journalled(kept), f"{at} {person}: {what}"][-KEPT:]
        self.reached.change("PUT", path, {**kept, "data": {LINES: "\n".join(lines) + "\n"}})
        print(f"page: {person}: {what}", flush=True)

    def log(self, pod: str, lines: int) -> str:
        query = {"tailLines": str(lines), "limitBytes": str(LONGEST)}
        return self.reached.text(f"{self.core}/pods/{pod}/log", query)


def journalled(kept: Mapping[str, Any]) -> list[str]:
    """Its lines, the latest last."""
    return str((kept.get("data") or {}).get(LINES, "")).splitlines()
