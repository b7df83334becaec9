"""A stand-in for playbooks/switch.yml: another pacing server instead of the one that runs.

`python -m testbed.standins.pacing.switch STATE PORT -i INVENTORY -e profile=NAME`: the profile's variable PACING says
how the server conducts itself (knobs of the pacing server, with a slash between two), or what goes wrong with the
start: `crash`, `hang`. STATE keeps the server's process number and a line for every switch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

CRASH = """[2026-06-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 3126, in run_scheduler_process
    self.init_model_worker()
ValueError: the stand-in was told to crash while it loads
"""


def main(words: list[str]) -> int:
    state, port, name = Path(words[0]), words[1], words[-1].removeprefix("profile=")
    profile = yaml.safe_load((Path(os.environ["SPARKLOOM_PROFILES"]) / f"{name}.yml").read_text())
    conduct = profile["env"]["PACING"]
    _stop(state / "server")
    with (state / "switches").open("a") as log:
        log.write(f"{name} {conduct}\n")
    print(f"PLAY [Stop what is served, start {name}]", flush=True)
    if conduct == "crash":
        print(CRASH, flush=True)
        return 2
    if conduct == "hang":
        time.sleep(600)
    server = subprocess.Popen(
        [sys.executable, "-m", "testbed", "pacing", *conduct.split("/"), "--port", port],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    (state / "server").write_text(str(server.pid))
    assert server.stdout
    return 0 if server.stdout.readline() else 1


def _stop(file: Path) -> None:
    try:
        os.kill(int(file.read_text()), signal.SIGTERM)
    except (OSError, ValueError):
        return
    time.sleep(0.1)  # its port is free again


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
