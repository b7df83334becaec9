"""NCCL judged while it speaks: sockets or half the fabric are found within a second of its own words."""

from __future__ import annotations

import re
from collections import deque

from sparkloom.onnode.nccl import lines
from sparkloom.onnode.nccl import log as nccl_log

SPEAKS = re.compile(r"NCCL (?:INFO|WARN|version)|nccl\w+Error|NCCL error|Watchdog caught collective")
KEPT = 20_000


class Transport:
    """The verdict over one rank's own lines."""

    def __init__(self, rails: int, nodes: int, least: str = "") -> None:
        self.rails, self.nodes, self.least = rails, nodes, least
        self._lines = deque[str](maxlen=KEPT)
        self._fresh = False
        self._report: nccl_log.Report | None = None

    def hear(self, line: str) -> None:
        if self.rails and len(self._lines) < KEPT and SPEAKS.search(line):  # it speaks while the ranks meet
            self._lines.append(line)
            self._fresh = True

    def report(self) -> nccl_log.Report:
        if self._fresh or self._report is None:
            self._report = nccl_log.judge(lines.read(self._lines), rails=self.rails, nodes=self.nodes)
            self._fresh = False
        return self._report

    def refusal(self) -> str:
        """Why this is not the planned transport, as soon as that is certain; empty before."""
        if not self._lines:
            return ""
        report = self.report()
        if old := too_old(report, self.least):
            return old
        certain = report.verdict == "socket" or (report.verdict == "roce-partial" and self._connected())
        return in_words(report) if certain else ""

    def final(self) -> str:
        """The same once the engine serves, when NCCL must have said which way it took."""
        if self.rails and (old := too_old(self.report(), self.least)):
            return old
        if not self.rails or self.report().good:
            return ""
        if not self._lines:
            return "NCCL says nothing in this log, so nothing proves the rails; set env NCCL_DEBUG: INFO in the profile"
        return in_words(self.report())

    def _connected(self) -> bool:
        return any("Connected all " in line for line in self._lines)

    def summary(self) -> str:
        return in_words(self.report()) if self.rails and self._lines else ""


def too_old(report: nccl_log.Report, least: str) -> str:
    """Three ranks in a ring: an older NCCL takes any port, and waits minutes for nobody."""
    told = next((rank.nccl_version for rank in report.ranks if rank.nccl_version), None)
    if not least or not told or _numbers(told) >= _numbers(least):
        return ""
    return (
        f"NCCL {told} runs here, and three ranks in a ring (fabric.ring) need {least} or newer: another image, also "
        "where torch loads its NCCL from (nvidia-nccl-cu13)"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])))


def in_words(report: nccl_log.Report) -> str:
    """Of this rank alone: the others judge themselves."""
    why = next((rank.why for rank in report.ranks if rank.verdict == report.verdict), report.why)
    return f"NCCL transport {report.verdict}: {why}"
