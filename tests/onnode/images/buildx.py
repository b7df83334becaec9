"""`docker` for a test, where a dockerd answers and no buildx is installed.

Its `buildx build` asks dockerd's own BuildKit through the API, as buildx does; all other words go to the real docker.
"""

from __future__ import annotations

import base64
import http.client
import io
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlencode

SOCKET = "/var/run/docker.sock"
API = "/v1.41/build"  # of Docker 20.10: every later one understands it


class Daemon(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def answers() -> bool:
    """Whether a dockerd is here, and its docker."""
    if not shutil.which("docker") or not Path(SOCKET).exists():
        return False
    return subprocess.run(["docker", "info"], capture_output=True, timeout=30).returncode == 0


def wrapped(folder: Path) -> Path:
    """A folder for PATH whose docker is this file."""
    folder.mkdir()
    script = folder / "docker"
    script.write_text(f'#!/bin/sh\nREAL={shutil.which("docker")} exec {sys.executable} {__file__} "$@"\n')
    script.chmod(0o755)
    return folder


def build(words: list[str]) -> int:
    given = dict(itertools.pairwise(words))
    name, _, value = given["--build-arg"].partition("=")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(words[-1], arcname=".")
    asked = {"version": 2, "t": given["-t"], "buildargs": json.dumps({name: value}), "platform": given["--platform"]}
    asked |= {"networkmode": given["--network"]} if "--network" in given else {}
    daemon = Daemon("docker")
    daemon.request("POST", f"{API}?{urlencode(asked)}", raw.getvalue(), {"Content-Type": "application/x-tar"})
    answer = daemon.getresponse()
    for line in answer:
        told = json.loads(line)
        if "error" in told or "message" in told:
            print(f"ERROR: failed to solve: {told.get('error') or told['message']}")
            return 1
        for step in re.findall(r"\[[^\]\n]*\d+/\d+\] [ -~]+", _trace(told)):
            print(f"#1 {step}", flush=True)
    return answer.status != 200


def _trace(told: dict[str, object]) -> str:
    """What can be read of BuildKit's own record of a step."""
    return base64.b64decode(str(told["aux"])).decode(errors="replace") if isinstance(told.get("aux"), str) else ""


if __name__ == "__main__":
    if sys.argv[1:3] == ["buildx", "version"]:
        sys.exit(0)
    if sys.argv[1:3] == ["buildx", "build"]:
        sys.exit(build(sys.argv[3:]))
    os.execv(os.environ["REAL"], ["docker", *sys.argv[1:]])
