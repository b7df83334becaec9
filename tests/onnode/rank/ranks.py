"""Supervisors as real processes on loopback addresses, one plan for all of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.places import REPO

ENGINE = Path(__file__).with_name("fake_engine.py")
LIMITS = {
    "check": 1.0, "start": 20.0, "stop": 0.7, "drain": 3.0, "token": 5.0, "token_every": 0.3, "look": 0.2,
    "silence": 2.0, "blind": 6.0, "memory": 1.0, "beat": 0.2, "lost": 2.0, "restarts": 5, "window": 600.0,
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        return int(plug.getsockname()[1])


def python(version: str) -> str | None:
    """A Python of this version on this machine, under its own name or kept by pyenv."""
    found = shutil.which(f"python{version}")
    if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
        return found
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    return str(kept[-1]) if kept else None


def oldest_python() -> str:
    return python("3.10") or sys.executable


class Ranks:
    """A group of `count` supervisors; `plan` may be changed before they start."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.plan: dict[str, Any] = {
            "profile": "p", "engine": "sglang", "release": "0.5.12", "image": "i", "port": free_port(),
            "control_port": free_port(), "probe_port": free_port(), "rails": 0, "generates": "/health_generate",
            "schedulers": ["sglang::scheduler"], "limits": dict(LIMITS),
            "members": [
                {"rank": n, "node": f"spark{n + 1}", "address": f"127.0.0.{11 + n}"} for n in range(count)
            ],
        }  # fmt: skip
        if count > 1:
            self.plan |= {"secret": str(self.secret())}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.prefix: dict[int, list[str]] = {}
        self.python = sys.executable
        self.program = ["-c", "import sys; from sparkloom.onnode.rank.main import main; sys.exit(main(sys.argv[1:]))"]
        self.environment = {**os.environ, "PYTHONPATH": str(REPO / "scripts"), "SPARKLOOM_CONFIG": "c0ffee"}

    def secret(self, text: str = "") -> Path:
        """What the group's ranks know each other by, as a mounted Secret."""
        file = self.folder / "secret"
        file.write_text(text or secrets.token_hex(32))
        file.chmod(0o400)
        return file

    def start(self, *ranks: int, config: str = "c0ffee", **changes: str) -> None:
        for rank in ranks or range(self.count):
            own = {**self.plan, "run": str(self.folder / f"run{rank}"), "words": str(self.folder / f"words{rank}")}
            file = self.folder / f"plan{rank}.json"
            file.write_text(json.dumps(own))
            words = [*self.prefix.get(rank, []), self.python, *self.program, "--", sys.executable, str(ENGINE)]
            words += [str(rank), str(self.plan["port"]), str(self.folder)]
            told = {"SPARKLOOM_RANK": str(rank), "SPARKLOOM_PLAN": str(file), "SPARKLOOM_CONFIG": config, **changes}
            told |= {"SPARKLOOM_ADDRESS": f"127.0.0.{11 + rank}"}
            with (self.folder / f"log{rank}").open("ab") as log:
                self.processes[rank] = subprocess.Popen(
                    words, env={**self.environment, **told}, stdout=log, stderr=log, start_new_session=True
                )

    def mode(self, rank: int, text: str) -> None:
        aside = self.folder / f"rank{rank}.aside"
        aside.write_text(text)
        aside.replace(self.folder / f"rank{rank}.mode")

    def status(self, rank: int) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / f"run{rank}/status.json").read_text()))
        except (FileNotFoundError, ValueError):
            return {"phase": "", "cause": "", "serving": False, "epoch": 0, "engine": None}

    def ask(self, rank: int, path: str) -> tuple[int, str]:
        """As the kubelet does it."""
        connection = http.client.HTTPConnection(f"127.0.0.{11 + rank}", self.plan["probe_port"], timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode().strip()

    def log(self, rank: int) -> str:
        return (self.folder / f"log{rank}").read_text(errors="replace")

    def serving(self, epoch: int = 0) -> bool:
        states = [self.status(rank) for rank in range(self.count)]
        return all(s["serving"] and s["epoch"] >= epoch for s in states)

    def wait(self, what: Callable[[], Any], seconds: float = 40) -> None:
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, "\n".join(f"== {n}\n{self.log(n)[-3000:]}" for n in self.processes)
            time.sleep(0.05)

    def until(self, rank: int, phase: str, text: str = "", seconds: float = 40) -> dict[str, Any]:
        self.wait(lambda: self.status(rank)["phase"] == phase and text in self.status(rank)["text"], seconds)
        return self.status(rank)

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
