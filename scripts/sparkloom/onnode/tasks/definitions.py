"""Read what defines a node's network ports.

Netplan's files, profiles of NetworkManager, files of networkd, and the live addresses. Changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from sparkloom.onnode.host import definitions
from sparkloom.onnode.task import Task


def main(
    task: Task,
    sysfs_root: Path = Path("/sys"),  # where sysfs is mounted
) -> None:
    found = {"files": definitions.definitions(), "links": definitions.links(sysfs_root)}
    task.exit_json(network=found)
