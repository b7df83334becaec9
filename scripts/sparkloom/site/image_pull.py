"""A pull has a clock of its own and ends with one line; the start that follows counts none of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparkloom.launch.downloads import amount
from sparkloom.render.k3s import paths
from sparkloom.site.store.follow import Poll, span


@dataclass(frozen=True, slots=True)
class Clock:
    seconds: float
    passed: Callable[[], float]
    variable: str = "model_serving_image_seconds"
    what: str = "the pull"

    def on(self, poll: Poll) -> Poll:
        """The same answers, until the time is over: then the pull is left to itself."""

        def asked() -> dict[str, Any]:
            status = poll()
            if status["state"] in {"done", "failed", "none"} or self.passed() <= self.seconds:
                return status
            far = f"{amount(status['have'])} of {amount(status['total'])}" if status["total"] else status["state"]
            cause = (
                f"not here after {span(self.seconds)} ({far}); {self.what} goes on: run this again and it is found at "
                f"work, or raise {self.variable}"
            )
            return {**status, "state": "failed", "cause": cause}

        return asked


def ended(node: str, reference: str, status: dict[str, Any], seconds: float) -> str:
    if status["state"] == "done":
        return f"{node}: {reference} is here, {amount(status['moved'])} in {span(seconds)}"
    cause = status.get("cause") or "its pull is gone; run this again"
    if status["state"] == "failed" and "model_serving_image_seconds" in cause:
        return f"{node}: {reference}: {cause}"
    return (
        f"{node}: {reference} cannot be pulled: {cause}. Without a way out bring it as a file: `sudo k3s ctr -n k8s.io "
        f"images import FILE` on {node}, or its archive in {paths.IMAGES}"
    )
