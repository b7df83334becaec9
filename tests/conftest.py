"""`make test` runs in lanes (pytest-xdist): the rack, the virtual machines, and file by file what needs neither."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from testbed.base import names
from tests import crashes, wheels
from tests.judged import Judged

# A shell starts what it runs in the background deaf to Ctrl-C, which what is typed here would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
LONG = ("tests/rack", "tests/vm")  # each of these rooms shares its machines: one lane, in its own order
# The same run gives the same answer. New dice are thrown by make test-fuzz; what they find is pinned as an @example.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=HealthCheck)
settings.register_profile("dice", settings.get_profile("same"), derandomize=False, database=None, print_blob=True)
settings.load_profile("dice" if os.environ.get("SPARKLOOM_DICE") else "same")
NICE = 5  # of the lanes beside the rack's
WORTH_A_LINE = 20  # seconds; dots alone do not say that a long test goes on


def lane(nodeid: str) -> str:
    return next((room for room in LONG if nodeid.startswith(f"{room}/")), nodeid.split("::")[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long lanes begin first."""
    items.sort(key=lambda item: (*LONG, lane(item.nodeid)).index(lane(item.nodeid)))


class Progress:
    """A line for every long test that ended, when the others only show dots."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.start = config, time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal: Any = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal and report.when == "call" and report.duration > WORTH_A_LINE:
            minutes = (time.monotonic() - self.start) / 60
            terminal.ensure_newline()
            terminal.write_line(f"[{minutes:5.1f} min] {report.outcome} in {report.duration:.0f} s: {report.nodeid}")


class Lanes:
    """What pytest-xdist asks; there only where it is installed and at work."""

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

        class ByLane(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return lane(nodeid)

        return ByLane(config, log)


class Lane:
    """In a lane's own process: the rack's goes first, and where nobody comes back to the rack, it stands still then.

    At rest it takes a third of a core, and all its nodes together weigh as much as one busy test.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        mine = lane(item.nodeid)
        if os.geteuid() == 0:  # nobody else may come back from being nice
            os.setpriority(os.PRIO_PROCESS, 0, 0 if mine in LONG else NICE)
        told = yield
        ends = mine == "tests/rack" and (nextitem is None or lane(nextitem.nodeid) != mine)
        if ends and os.environ.get("CI") and shutil.which("docker"):
            subprocess.run(["docker", "pause", *names.NODES.values()], check=False, capture_output=True)
        return told


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(crashes, "crashes")  # its pytest_configure is called at once
    if hasattr(config, "workerinput"):  # a lane's own process
        config.pluginmanager.register(Lane(), "lane")
        return
    config.pluginmanager.register(Progress(config), "progress")
    config.pluginmanager.register(Judged(), "judged")
    if config.pluginmanager.hasplugin("xdist"):
        config.option.loadscopereorder = False
        config.pluginmanager.register(Lanes(), "lanes")


@pytest.fixture(autouse=True)
def hub_client() -> Iterator[None]:
    """The store's program watches its process' hub client, which huggingface_hub keeps for the whole of a process.

    On a node that process ends with the download. Here the next test would still be judged by the last one's hub.
    """
    yield
    if "huggingface_hub" in sys.modules:
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils._http import default_client_factory

        set_client_factory(default_client_factory)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is handed out, made from what git would; once for all lanes."""
    mine = tmp_path_factory.getbasetemp()
    return wheels.built(mine.parent if os.environ.get("PYTEST_XDIST_WORKER") else mine)
