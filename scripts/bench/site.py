#!/usr/bin/env python3
"""What a run of the site costs: `.venv/bin/python scripts/bench/site.py -i inventories/home [--whole] [--json]`.

Runs the roles that every node has (preflight, nodes, fabric, network; with --whole all of site.yml) twice and prints
for each run: seconds, what it changed, module runs that were sent to a host, the five longest tasks; and the ratio of
the two. The first run is what it finds to do: `playbooks/teardown.yml` beforehand makes it a first one. The target of
the second is for an idle machine; the load is printed beside it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
NODE_ROLES = "preflight,nodes,fabric,network"
RECAP = re.compile(r"^(\S+)\s+: (ok=.*)$", re.M)
SECONDS, RUNS = 15.0, 25  # targets of a second run: the node roles on four nodes; per host


@dataclass(frozen=True)
class Run:
    seconds: float
    changed: dict[str, int]
    module_runs: dict[str, int]
    slowest: list[dict[str, Any]]
    load: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-i", "--inventory", default="inventories/kind")
    parser.add_argument("--whole", action="store_true", help="all of site.yml, weights and serving too")
    parser.add_argument("--json", action="store_true")
    options, extra = parser.parse_known_args()
    what = [] if options.whole else ["--tags", NODE_ROLES]
    runs = [measure(options.inventory, [*what, *extra]) for _ in range(2)]
    report = {**provenance(), "what": "site.yml" if options.whole else NODE_ROLES, "inventory": options.inventory,
              "ratio": round(runs[0].seconds / runs[1].seconds, 2), "runs": [asdict(run) for run in runs]}  # fmt: skip
    print(json.dumps(report, indent=2)) if options.json else show(report, runs, limit=not options.whole)
    second = runs[1]
    most = max(second.module_runs.values(), default=0)
    good = not any(second.changed.values()) and most <= RUNS and (options.whole or second.seconds <= SECONDS)
    return 0 if good else 1


def measure(inventory: str, extra: list[str]) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        env = {**os.environ, "SPARKLOOM_TIMES_JSON": str(times), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        load = os.getloadavg()[0]
        done = subprocess.run(
            [program, "-i", inventory, "site.yml", *extra], cwd=REPO, env=env, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{done.stdout[-4000:]}{done.stderr[-2000:]}\nthe run failed; nothing was measured")
        cost = json.loads(times.read_text())
    changed = {host: int(re.findall(r"changed=(\d+)", counts)[0]) for host, counts in RECAP.findall(done.stdout)}
    return Run(round(cost["seconds"], 1), changed, cost["module_runs"], cost["slowest"], round(load, 1))


def provenance() -> dict[str, Any]:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPO, capture_output=True, text=True)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {"date": today, "commit": commit.stdout.strip(), "cores": os.cpu_count()}


def show(report: dict[str, Any], runs: list[Run], *, limit: bool) -> None:
    print("  ".join(f"{key} {report[key]}" for key in ("date", "commit", "cores", "inventory", "what")))
    for name, run in zip(("first", "second"), runs, strict=True):
        print(f"\n{name} run: {run.seconds:.1f} s at load {run.load}, changed {sum(run.changed.values())} on all hosts")
        print("module runs: " + "  ".join(f"{host} {count}" for host, count in run.module_runs.items()))
        for task in run.slowest:
            print(f"  {task['seconds']:6.1f} s  {task['task']}")
    target = f", {SECONDS:.0f} s" if limit else ""
    print(f"\nfirst : second = {report['ratio']} (targets of the second: nothing changed, {RUNS} runs{target})")


if __name__ == "__main__":
    sys.exit(main())
