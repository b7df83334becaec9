#!/usr/bin/env python3
"""What the doctor costs: `.venv/bin/python scripts/bench/doctor.py -i inventories/kind [--beside N | --on-nodes N]`.

Runs `sparkloom doctor` three times and prints seconds, seconds of this machine's processors, and the load. With
--beside N, N loops that never rest run on this machine meanwhile, in the doctor's own group of processes; with
--on-nodes N they run on the virtual rack's nodes, as a Spark's compilers do. Half a minute passes before the first run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
SECONDS, RUNS, SETTLE = 15.0, 3, 30
LOOP = ["timeout", "600", "sh", "-c", "while :; do :; done"]
NODE = [sys.executable, "-m", "testbed", "rack", "exec"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-i", "--inventory", default="inventories/kind")
    load = parser.add_mutually_exclusive_group()
    load.add_argument("--beside", type=int, default=0, metavar="N", help="busy loops on this machine")
    load.add_argument("--on-nodes", type=int, default=0, metavar="N", help="busy loops on the rack's nodes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    beside, inside = [LOOP] * options.beside, [on_node(at) for at in range(options.on_nodes)]
    with busy([*beside, *inside]):
        runs = [measure(options.inventory) for _ in range(RUNS)]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPO, capture_output=True, text=True)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    report = {"date": today, "commit": commit.stdout.strip(), "cores": os.cpu_count(), "beside": options.beside,
              "on_nodes": options.on_nodes, "runs": runs}  # fmt: skip
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print("  ".join(f"{key} {value}" for key, value in report.items() if key != "runs"))
        for run in runs:
            told = "{seconds:5.1f} s, {processor:4.1f} s of a processor, load {load}, exit {exit}"
            print(told.format(**run))
        print(f"(target: {SECONDS:.0f} s)")
    return 0 if max(run["seconds"] for run in runs) <= SECONDS else 1


def on_node(at: int) -> list[str]:
    return [*NODE, f"spark{at % 4 + 1}", "--", *LOOP]


@contextmanager
def busy(commands: list[list[str]]) -> Iterator[None]:
    """Ends what it began, on nodes too: a loop there outlives whoever asked for it."""
    running = [subprocess.Popen(command, cwd=REPO, stdin=subprocess.DEVNULL) for command in commands]
    try:
        time.sleep(SETTLE if running else 0)
        yield
    finally:
        for process in running:
            process.terminate()
        for name in {command[len(NODE)] for command in commands if command[: len(NODE)] == NODE}:
            subprocess.run([*NODE, name, "--", "pkill", "-f", LOOP[-1]], cwd=REPO, check=False)


def measure(inventory: str) -> dict[str, Any]:
    program = str(Path(sys.executable).with_name("sparkloom"))
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([program, "doctor", "-i", inventory], cwd=REPO, capture_output=True)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    load = round(os.getloadavg()[0], 1)
    return {"seconds": round(seconds, 1), "processor": round(spent, 1), "load": load, "exit": done.returncode}


if __name__ == "__main__":
    sys.exit(main())
