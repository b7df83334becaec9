"""Writes down what the tests of claims said (tests/rack/claims.yml), for `python -m testbed claims`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from functools import cached_property

import pytest

from testbed.face import claims
from tests.places import REPO


class Judged:
    def __init__(self) -> None:
        self.wanted = claims.tests()
        self.run = f"{os.getpid()}-{time.time():.0f}"

    @cached_property
    def commit(self) -> str:
        told = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=REPO, capture_output=True, text=True)
        return told.stdout.strip() or "no commit"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = claims.known(report.nodeid, self.wanted)
        if not name or report.skipped or (report.when != "call" and report.passed):
            return
        date = time.strftime("%Y-%m-%d", time.gmtime())
        row = {"test": name, "passed": report.passed, "date": date, "commit": self.commit, "run": self.run}
        claims.SAID.parent.mkdir(parents=True, exist_ok=True)
        with claims.SAID.open("a") as file:
            file.write(f"{json.dumps(row)}\n")
