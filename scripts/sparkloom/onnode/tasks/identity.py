"""Read which machine this is, of all that are alike. Changes nothing."""

from __future__ import annotations

from pathlib import Path

from sparkloom.onnode.host.read import text
from sparkloom.onnode.task import Task

MACHINE_ID = Path("/etc/machine-id")  # of the installation
SERIAL = Path("/sys/class/dmi/id/board_serial")  # for root's eyes only


def main(task: Task) -> None:
    task.exit_json(machine_id=text(MACHINE_ID), serial=text(SERIAL))
