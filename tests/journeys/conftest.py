"""Every journey begins in an empty home, with a terminal. Nothing of ours is imported but the terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.base.machine import ssh_server
from testbed.base.shell import RackError
from tests import wheels
from tests.journeys.sites import nobody_listens
from tests.journeys.terminal import SIZES, Terminal
from tests.places import REPO

SPARK = REPO / "testbed/standins/sparks/spark.sh"
UNKNOWN = ("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As short as people's are: the path of a socket, as ssh keeps one there, has 107 letters at most."""
    made = tmp_path_factory.mktemp("j") / "home"
    made.mkdir()
    return made


@pytest.fixture(params=SIZES, ids=lambda size: "x".join(map(str, size)))
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    """80 columns, 24 lines."""
    made = Terminal(home)
    yield made
    made.close()


@pytest.fixture
def sized(home: Path, size: tuple[int, int]) -> Iterator[Terminal]:
    """The same journey in both windows."""
    made = Terminal(home, size)
    yield made
    made.close()


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `sparkloom` of somebody who installed the wheel: nothing is written into this checkout."""
    return wheels.installed(wheel, tmp_path_factory.mktemp("installed") / "venv")


@dataclass(frozen=True)
class Sparks:
    """Four machines that answer on SSH; `path` holds an `ssh` that knows their port and key."""

    addresses: tuple[str, ...]
    path: Path
    port: int
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def begin(self, order: Sequence[int] = (1, 2, 3, 4), at: Mapping[int, str] | None = None) -> None:
        """spark-N at its address; another order is what a power cut can leave. `at`: another address of some."""
        self.end()
        addresses = [(at or {}).get(n, address) for n, address in zip(order, self.addresses, strict=True)]
        for n, address in zip(order, addresses, strict=True):
            words = [str(SPARK), str(self.path.parent), f"spark-{n}", address, str(self.port)]
            self.running.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
        for one, address in zip(self.running, addresses, strict=True):
            _wait(one, [str(self.path / "ssh"), *UNKNOWN, f"nvidia@{address}", "true"])

    def end(self) -> None:
        for one in self.running:
            one.kill()  # what it started goes with it
            one.wait()
        self.running.clear()


@pytest.fixture(scope="module")
def sparks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sparks]:
    """Four real sshd on this machine's loopback, each in namespaces in which nothing can be changed."""
    apart = ["unshare", "--mount", "--uts", "--pid", "--fork", "true"]
    if os.geteuid() or subprocess.run(apart, capture_output=True).returncode:
        pytest.skip("needs root and namespaces of its own")
    try:
        program = ssh_server(print)
    except RackError as error:
        pytest.skip(f"no sshd here: {error}")
    folder, port = tmp_path_factory.mktemp("sparks"), nobody_listens()
    (folder / "program").symlink_to(program)
    for key in ("id", *(f"spark-{n}.key" for n in range(1, 5))):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    shutil.copy2(folder / "id.pub", folder / "authorized_keys")
    config = folder / "config"
    config.write_text(
        f"Host *\n  Port {port}\n  IdentityFile {folder}/id\n  IdentitiesOnly yes\n  LogLevel ERROR\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking accept-new\n"
    )
    # the client reads root's own ~/.ssh/config, whatever HOME says: a person's would hold these lines
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    (folder / "bin/ssh").chmod(0o755)
    addresses = tuple(f"127.0.0.1{n}" for n in range(1, 5))
    made = Sparks(addresses, folder / "bin", port)
    try:
        made.begin()
        yield made
    finally:
        made.end()


def _wait(process: subprocess.Popen[str], login: list[str]) -> None:
    for _ in range(300):
        if subprocess.run(login, capture_output=True).returncode == 0:
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.2)
    raise AssertionError(f"no answer to {login}")
