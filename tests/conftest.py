"""`make test` runs in lanes (pytest-xdist): the rack, the virtual machines, and file by file what needs neither."""

from __future__ import annotations

import time

import pytest

LANES = ("rack", "vm")
WORTH_A_LINE = 20  # seconds; dots alone do not say that a long test goes on


def lane(item: pytest.Item) -> str:
    return next((name for name in LANES if item.get_closest_marker(name)), str(item.path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long lanes begin first; the tests of one share their machines and keep their order."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    items.sort(key=lambda item: LANES.index(lane(item)) if lane(item) in LANES else len(LANES))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(lane(item)))


class Progress:
    """A line for every long test that ended, when the others only show dots."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.start = config, time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal and report.when == "call" and report.duration > WORTH_A_LINE:
            name, minutes = report.nodeid.split("@")[0], (time.monotonic() - self.start) / 60
            terminal.ensure_newline()
            terminal.write_line(f"[{minutes:5.1f} min] {report.outcome} in {report.duration:.0f} s: {name}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # not in a lane's own process
        config.pluginmanager.register(Progress(config), "progress")
