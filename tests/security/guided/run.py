"""`python -m tests.security.guided.run [--minutes N] [--out FILE] [NAME...]`: each parser in turn, an equal share each.

One process at a time. The corpus stays in ~/.cache/sparkloom/fuzz, so that each run goes on where the last one ended;
the inputs of what was found lie beside it, for this run alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.base import names, steps
from testbed.make import atheris
from tests.places import REPO
from tests.security.guided.one import RESULT
from tests.security.guided.targets import TARGETS

CORPUS = names.CACHE / "fuzz"
GRACE = 300  # seconds for imports, and for one input's end
STUCK = 256  # no exit status, and no signal
ENDED = {70: "a hang that no signal ends", 71: "memory", STUCK: "no end at all"}  # libFuzzer's own exit statuses


def _run(name: str, seconds: float) -> dict[str, Any]:
    """Once more for the rest of its time where something ended the process, which is a finding."""
    folder = CORPUS / name
    for old in (folder / "findings", folder / "seeds"):
        shutil.rmtree(old, ignore_errors=True)
    told: dict[str, Any] = {"executions": 0, "seconds": 0.0, "slowest": 0.0, "findings": {}}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [atheris.place(), REPO, REPO / "scripts"]))}
    while (left := seconds - told["seconds"]) > 1:
        (folder / RESULT).unlink(missing_ok=True)
        words = [sys.executable, "-m", "tests.security.guided.one", name, str(left), str(folder)]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("wb") as log:
            try:
                done = subprocess.run(
                    words, cwd=REPO, env=environment, stdout=log, stderr=log, timeout=left + GRACE, check=False
                )
                status = done.returncode
            except subprocess.TimeoutExpired:
                status = STUCK
        if (folder / RESULT).exists():
            one = json.loads((folder / RESULT).read_text())
            told["executions"] += one["executions"]
            told["seconds"] += one["seconds"]
            told["slowest"] = max(told["slowest"], one["slowest"])
            told["findings"] |= one["findings"]
        if status:
            end = (folder / "log").read_text(errors="replace")[-600:]
            why = ENDED.get(status, f"exit status {status}")
            told["findings"][why] = {"input": f"{folder}/ended-*", "said": end}
        if not (folder / RESULT).exists():
            break
    told["corpus"] = sum(1 for _ in (folder / "corpus").glob("*"))
    return told


def _line(name: str, told: dict[str, Any]) -> str:
    rate = told["executions"] / max(told["seconds"], 0.1)
    return (
        f"{name:<15} {told['executions']:>10,} executions {told['seconds']:>7.1f} s {rate:>7.0f}/s "
        f"slowest {told['slowest']:.2f} s  corpus {told['corpus']:>5}  findings {len(told['findings'])}"
    )


def page(result: dict[str, Any]) -> str:
    """A table for docs, of a result that `--out` has written."""
    rows = "".join(
        f"| {name} | {told['executions']:,} | {told['seconds']:.0f} | {told['corpus']} | {len(told['findings'])} |\n"
        for name, told in result["targets"].items()
    )
    head = "| parser | executions | seconds | corpus | findings |\n|--|--|--|--|--|\n"
    return f"{result['began']}, commit {result['commit']}, atheris {atheris.VERSION}.\n\n{head}{rows}"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SPARKLOOM_FUZZ_MINUTES", "10")))
    parser.add_argument("--out", type=Path, default=CORPUS / "last.json")
    parser.add_argument("--page", type=Path, help="print the table of such a file, and fuzz nothing")
    parser.add_argument("names", nargs="*", default=[], metavar="NAME")
    asked = parser.parse_args(words)
    if asked.page:
        print(page(json.loads(asked.page.read_text())))
        return 0
    chosen = asked.names or list(TARGETS)
    steps.quietly(atheris.steps())
    commit = subprocess.run(["git", "-C", REPO, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    result: dict[str, Any] = {"commit": commit.stdout.strip(), "began": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}
    result["targets"] = {}
    for name in chosen:
        told = result["targets"][name] = _run(name, asked.minutes * 60 / len(chosen))
        print(_line(name, told), flush=True)
        for place, one in told["findings"].items():
            print(f"  FOUND {place}: {one['said'].strip().splitlines()[-1:] or ['']} in {one['input']}", flush=True)
        asked.out.write_text(json.dumps(result, indent=1))
    found = sum(len(told["findings"]) for told in result["targets"].values())
    executions = sum(told["executions"] for told in result["targets"].values())
    seconds = sum(told["seconds"] for told in result["targets"].values())
    print(
        f"{len(chosen)} parsers, {executions:,} executions in {seconds:.0f} s, {found} findings; {asked.out}",
        flush=True,
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
