"""On a machine with a GPU and the folder of `make gpu-pack`; anywhere else each test is skipped, and says so.

Nothing of torch is imported here: where there is no GPU this room costs a look at PATH.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.beds.gpu import place

HERE = "tests/gpu/"
NEEDS = {"two_gpus": 2}
RUNTIME = "nvidia-container-runtime"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "two_gpus: needs two of them")
    config.addinivalue_line("markers", "takes(seconds): skipped where less is left of the machine's time")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.nodeid.startswith(HERE)]
    why = place.absent() if mine else ""
    for item in mine:
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The run's last line, beside what it showed."""
    if place.RUN.exists():
        found = {name: len(terminalreporter.stats.get(name, [])) for name in ("failed", "error", "passed", "skipped")}
        counted = ", ".join(f"{number} {name}" for name, number in found.items() if number)
        place.tell("machine", {"line": f"{counted} in {time.time() - place.BEGUN:.0f} s"})


@pytest.fixture(autouse=True)
def enough(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("two_gpus") and len(place.gpus()) < 2:
        pytest.skip(f"one GPU here: {place.gpus()}")
    takes = request.node.get_closest_marker("takes")
    if takes and place.left() < takes.args[0]:
        pytest.skip(f"{place.left():.0f} s are left of this machine, it takes {takes.args[0]}")
    left = place.left()
    yield
    place.tell("seconds", {request.node.nodeid.removeprefix(HERE): round(left - place.left(), 1)})


@pytest.fixture(scope="session")
def runtime() -> str:
    """NVIDIA's runtime with the machine's own configuration, and a CDI specification by its own tool."""
    for name in ("nvidia-ctk", "nvidia-cdi-hook", RUNTIME):
        shutil.copy(place.BIN / name, f"/usr/bin/{name}")
    within = f"PYTHONPATH={place.PRODUCT} {sys.executable} -m testbed.beds.gpu.within"
    first = f'case " $* " in *" create "*) {within} "$@";; esac'
    then = f'LD_LIBRARY_PATH={place.LIB} exec {place.BIN}/runc "$@"'
    Path("/usr/local/sbin/runc").write_text(f"#!/bin/sh\n{first}\n{then}\n")
    place.done("chmod 755 /usr/local/sbin/runc; mkdir -p /etc/nvidia-container-runtime")
    place.done(["nvidia-ctk", "config", "--config-file=/etc/nvidia-container-runtime/config.toml", "--in-place"])
    return RUNTIME


@pytest.fixture(scope="session")
def nets() -> None:
    from testbed.beds.gpu import network

    network.make()
