"""The node before this one in the chain as the source: over both rails at once, each file from where it stopped."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import Snapshot, StoreError

SILENCE = 60.0  # seconds without an answer after which the other node counts as gone
PAUSE = 0.3
STOPPED = "stopped because of"


class Peer:
    def __init__(self, source: dict[str, Any]) -> None:
        self.name, self.addresses, self.port = source["name"], source["addresses"], source["port"]
        self.headers = {"X-Run": source["run"]}

    def manifest(self) -> list[Snapshot]:
        """Waits as long as the other node answers that it does not know yet."""
        heard, turn = time.monotonic(), 0
        while True:
            try:
                status, data = self._ask(self.addresses[turn % len(self.addresses)], "/manifest")
                heard = time.monotonic()
                if status == 200:
                    return [Snapshot.of(snapshot) for snapshot in data["snapshots"]]
            except (OSError, http.client.HTTPException, ValueError) as error:
                if time.monotonic() - heard > SILENCE:
                    raise self._gone(error) from None
            turn += 1
            time.sleep(PAUSE)

    def release(self) -> None:
        """This node has all: the one before need not stay."""
        try:
            self._ask(self.addresses[0], "/released")
        except (OSError, http.client.HTTPException, ValueError):
            return

    def fetch(self, number: int, intake: Intake) -> None:
        heard, turn = time.monotonic(), number
        while intake.have < intake.entry.size:
            try:
                if not self._pull(self.addresses[turn % len(self.addresses)], number, intake):
                    time.sleep(PAUSE)
                heard = time.monotonic()
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() - heard > SILENCE:
                    raise self._gone(error) from None
                turn += 1
                time.sleep(PAUSE)

    def _pull(self, address: str, number: int, intake: Intake) -> bool:
        """False when the other node has nothing more of this file yet."""
        connection = http.client.HTTPConnection(address, self.port, timeout=30)
        try:
            connection.request("GET", f"/file/{number}", headers={**self.headers, "Range": f"bytes={intake.have}-"})
            answer = connection.getresponse()
            if answer.status == 503:
                return False
            if answer.status != 206:
                self._refused(answer)
                raise http.client.HTTPException(f"answer {answer.status}")
            intake.drain(answer)
            return True
        finally:
            connection.close()

    def _ask(self, address: str, path: str) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(address, self.port, timeout=30)
        try:
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            self._refused(answer)
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def _refused(self, answer: http.client.HTTPResponse) -> None:
        if answer.status == 409:
            cause = json.loads(answer.read())["cause"]
            raise StoreError(cause if cause.startswith(STOPPED) else f"{STOPPED} {self.name}: {cause}")

    def _gone(self, error: Exception) -> StoreError:
        where = ", ".join(f"{address}:{self.port}" for address in self.addresses)
        return StoreError(
            f"{self.name} ({where}) gives nothing since {SILENCE:.0f} s ({error}); look at the rails with "
            "`sparkloom doctor`, then run this again: what is here stays"
        )
