"""Talking to a running QEMU over its control socket."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

from testbed.base.shell import RackError


def ask(path: Path, command: str, arguments: dict[str, Any] | None = None, timeout: float = 120) -> Any:
    """One command, one answer."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(timeout)
        try:
            link.connect(str(path))
            with link.makefile("rw", encoding="utf-8") as lines:
                lines.readline()  # the greeting
                _call(lines, "qmp_capabilities", {})
                return _call(lines, command, arguments or {})
        except (OSError, json.JSONDecodeError) as error:
            raise RackError(f"QEMU does not answer on {path}: {error}; `down`, then `up`, starts it anew") from None


def _call(lines: Any, command: str, arguments: dict[str, Any]) -> Any:
    lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    lines.flush()
    while True:  # events come between
        answer = json.loads(lines.readline() or "{}")
        if "error" in answer:
            raise RackError(f"QEMU refused {command}: {answer['error'].get('desc')}")
        if "return" in answer:
            return answer["return"]
        if not answer:
            raise RackError(f"QEMU ended while it was asked for {command}")


def typed(path: Path, line: str) -> str:
    """A line of QEMU's own monitor; what it prints is the error, if there is one."""
    return str(ask(path, "human-monitor-command", {"command-line": line})).strip()


def write_state(path: Path, target: Path) -> None:
    """The machine's whole memory into a file; it stays stopped."""
    ask(path, "stop")
    ask(path, "migrate", {"uri": f"file:{target}"})
    until = time.monotonic() + 300
    while (job := ask(path, "query-migrate"))["status"] not in ("completed", "failed", "cancelled"):
        if time.monotonic() > until:
            raise RackError(f"writing {target} did not end in 300 s: {job}")
        time.sleep(0.2)
    if job["status"] != "completed":
        raise RackError(f"writing {target}: {job.get('error-desc', job['status'])}")


def wait_running(path: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while (status := ask(path, "query-status")["status"]) != "running":
        if time.monotonic() > until:
            raise RackError(f"the kept machine did not go on within {seconds:.0f} s: {status}")
        if status == "paused":
            ask(path, "cont")
        time.sleep(0.1)
