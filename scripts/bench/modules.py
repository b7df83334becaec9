#!/usr/bin/env python3
"""What one run of a module costs the processor: `.venv/bin/python scripts/bench/modules.py [--runs 40] [--json]`.

A task of ours (scripts/sparkloom/site/executor.py) and Ansible's ping, which has its library, in turns on this machine
as the node, less an empty run. Controller and node together; on a busy machine the ratio is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
INVENTORY = "node ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n"


def cost(folder: Path, runs: int, *, lean: bool) -> float:
    """Seconds of processor of a whole ansible-playbook."""
    module = {"sparkloom_node": {"do": "units", "units": []}} if lean else {"ansible.builtin.ping": {}}
    task = {"name": "Run it", **module, "loop": list(range(runs))}
    (folder / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [ANSIBLE, "-i", folder / "hosts", folder / "play.yml"]
    subprocess.run(command, cwd=REPO, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="runs of the module in one playbook (40)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of both ways; the least counts (3)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hosts").write_text(INVENTORY)
        found: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(args.rounds):
            for lean, kept in found.items():
                kept.append((cost(folder, args.runs, lean=lean) - cost(folder, 0, lean=lean)) / args.runs)
    short, whole = min(found[True]), min(found[False])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPO, capture_output=True, text=True).stdout
    told = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit.strip(), "load": os.getloadavg()[0]}
    told |= {"ours_s": round(short, 3), "with_library_s": round(whole, 3), "ratio": round(whole / short, 1)}
    if args.json:
        print(json.dumps(told))
    else:
        print(f"one module run: ours {short:.3f} s, with Ansible's library {whole:.3f} s: {whole / short:.1f} times")
        print(f"{told['date']}, {told['commit']}, load {told['load']:.1f}")


if __name__ == "__main__":
    main()
