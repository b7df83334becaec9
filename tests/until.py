"""How a test waits for what is to come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(what: Callable[[], Any], seconds: float, why: str = "", *, despite: tuple[type[Exception], ...] = ()) -> Any:
    """The first answer that is not empty, asked for less and less often; what is raised `despite` it is none yet."""
    begun, last = time.monotonic(), ""
    while True:
        try:
            if found := what():
                return found
        except despite as error:
            last = str(error)[-1500:]
        passed = time.monotonic() - begun
        assert passed < seconds, f"{why or what}: not after {seconds:.0f} s. {last}"
        time.sleep(min(1.0, max(0.02, passed / 20)))
