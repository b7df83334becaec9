"""What the stand-in was started with, for tests: one JSON line a start, readable by root only."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

STARTS = Path("/var/lib/rancher/k3s/stand-in/starts.jsonl")


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def start(command: str, options: dict[str, Any]) -> None:
    STARTS.parent.mkdir(parents=True, exist_ok=True)
    row = {"at": time.time(), "argv": sys.argv, "env": dict(os.environ), "command": command, "config": options}
    with os.fdopen(os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as stream:
        stream.write(json.dumps(row) + "\n")
