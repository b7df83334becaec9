"""Keep the GPU's CDI specification in step with the driver.

A specification lists the driver's libraries with their version. After a driver update they are gone, and containers
start without a GPU. One that names another driver than the one that answers is generated again where it lies. Says
which container toolkit is there; does nothing where there is none. An undo puts back what lay there before.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from sparkloom.onnode.host import backup, gpu
from sparkloom.onnode.host.read import outcome, text
from sparkloom.onnode.task import Task

REFRESH = "nvidia-cdi-refresh.service"  # of toolkit 1.18 and newer: writes below /var/run at every boot
LIBRARY = re.compile(r"/lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)")


def toolkit() -> str:
    match = re.search(r"version\s+v?(\d+\.\d+\.\d+)", outcome("nvidia-ctk", "--version")[0])
    return match[1] if match else ""


def recorded(spec: str) -> str:
    """The driver whose libraries a specification lists; nothing when it lists none, or of several."""
    versions = set(LIBRARY.findall(spec))
    return versions.pop() if len(versions) == 1 else ""


def wanted(etc: Path, run: Path) -> list[Path]:
    """Every specification that is there; where one belongs when there is none."""
    there = [path for path in (etc, run) if path.exists()]
    return there or [run if outcome("systemctl", "cat", REFRESH)[0] else etc]


def generate() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "nvidia.yaml")
        _, why = outcome("nvidia-ctk", "cdi", "generate", f"--output={path}", timeout=60)
        if why:
            raise RuntimeError(f"nvidia-ctk cdi generate: {why}")
        return path.read_text()


def main(
    task: Task,
    etc: Path = Path("/etc/cdi/nvidia.yaml"),  # where a specification is kept over a boot
    run: Path = Path("/var/run/cdi/nvidia.yaml"),  # where the toolkit's own service keeps it
) -> None:
    version, (found, why) = toolkit(), gpu.rows(gpu.FIELDS[:1])
    now = found[0][gpu.FIELDS[0]] if found else ""
    paths = wanted(etc, run)
    specs = {str(path): recorded(text(path)) for path in paths}
    answer = {"toolkit": version, "driver": now, "driver_why": why, "specs": specs}
    drifted = [Path(path) for path, before in specs.items() if before != now]
    if not (version and now and drifted):
        task.exit_json(**answer)
    diff = [backup.diff(path, f"driver {specs[str(path)] or 'none'}\n", f"driver {now}\n") for path in drifted]
    if not task.check_mode:
        try:
            made = generate()
        except (RuntimeError, OSError) as error:
            task.fail_json(msg=f"{error}; see `nvidia-ctk cdi generate` on the node", **answer)
        # one that names no driver even now would be made again at every run: only another content is a change
        drifted = [path for path in drifted if text(path) != made.strip()]
        for path in drifted:
            if path == etc:  # the other one is gone at the next boot anyway
                backup.keep_file(path)
            backup.write(path, made, 0o644)
            specs[str(path)] = recorded(made)
    task.exit_json(changed=bool(drifted), diff=diff if drifted else [], **answer)
