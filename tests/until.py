"""How a test waits for what is to come."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

NOT_YET = (AssertionError, ValueError, OSError, subprocess.SubprocessError)


def until(what: Callable[[], Any], seconds: float = 60, why: str = "") -> Any:
    """The first answer that is not empty; a busy machine is asked less and less often."""
    begun, last = time.monotonic(), ""
    while True:
        try:
            if found := what():
                return found
        except NOT_YET as error:
            last = str(error)[-1500:]
        passed = time.monotonic() - begun
        assert passed < seconds, f"{why or what}: not after {seconds:.0f} s. {last}"
        time.sleep(min(1.0, max(0.02, passed / 20)))
