#!/usr/bin/env python3
"""How long the brain thinks: `.venv/bin/python scripts/bench/brain.py [--json] [--profiles 1000]`.

Walls of the three commands that people wait for, as they are started from a shell (best of 15), and the
work per profile inside one process. Budgets are for an idle machine; on a busy one compare the CPU time, or its ratio
to that of a bare interpreter which imports the same libraries, measured in turns with it.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars, load
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import fabric
from sparkloom.launch import resolve as launches
from sparkloom.render import manifests

REPO = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("sparkloom")
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


@dataclass(frozen=True)
class Figure:
    what: str
    wall_ms: float
    cpu_ms: float
    budget_ms: float
    of_bare: float | None = None  # CPU as a multiple of importing the same libraries alone
    most: float | None = None

    @property
    def ratio(self) -> float:
        return self.wall_ms / self.budget_ms

    @property
    def good(self) -> bool:
        return not self.of_bare or not self.most or self.of_bare <= self.most


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profiles", type=int, default=1000, help="synthetic profiles to resolve and render")
    options = parser.parse_args()
    origin, figures = provenance(), list(measure(options.profiles))
    if options.json:
        rows = [{**asdict(figure), "ratio": round(figure.ratio, 3)} for figure in figures]
        print(json.dumps({**origin, "figures": rows}, indent=2))
        return
    print("  ".join(f"{key} {value}" for key, value in origin.items()))
    print(f"{'':52}{'wall':>10}{'CPU':>10}{'budget':>10}  wall/budget")
    for f in figures:
        verdict = "" if f.ratio <= 1 else "   over budget"
        print(f"{f.what:52}{f.wall_ms:7.1f} ms{f.cpu_ms:7.1f} ms{f.budget_ms:7.0f} ms{f.ratio:13.2f}{verdict}")
        if f.of_bare:
            print(f"{'':4}{f.of_bare:.2f} times the bare imports, at most {f.most}{'' if f.good else '   over'}")


def provenance() -> dict[str, Any]:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", REPO, *words], capture_output=True, text=True, check=False).stdout.strip()

    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": git("rev-parse", "--short", "HEAD")
        + ("+" if git("status", "--porcelain", "scripts/sparkloom") else ""),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def measure(count: int) -> Iterator[Figure]:
    shipped = len(profile.names())
    yield command("sparkloom --help", 150, 1.5, "--help")
    yield command(f"sparkloom lint, all {shipped} profiles", 500, 5.5, "lint")
    yield command("sparkloom render, one profile of four ranks", 300, 3.5, "render", ULTRA, "--force")
    where, every = load(), list(itertools.islice(synthetic(), count))
    render: Callable[[LoadedProfile], str] = lambda loaded: manifests.to_yaml(  # noqa: E731
        manifests.build(launches.resolve(loaded, where), where, "refuse")[0]
    )
    yield per_item(f"resolve and render, mean of {count} profiles", 3, every, render)
    yield per_item("plan of a fabric with 64 nodes", 50, [large()] * 5, fabric.plan.__wrapped__)


def command(what: str, budget: float, most: float, *words: str) -> Figure:
    bare = [sys.executable, "-c", f"import {', '.join(libraries(words))}"]  # and nothing else
    runs = [(timed([COMMAND, *words]), timed(bare)) for _ in range(15)]
    wall, cpu = min(ours for ours, _ in runs)
    of_bare = min(ours for (_, ours), _ in runs) / min(theirs for _, (_, theirs) in runs)
    return Figure(what, wall * 1e3, cpu * 1e3, budget, of_bare, most)


def timed(argv: list[Any]) -> tuple[float, float]:
    """Wall and CPU."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(map(str, argv))} failed with {done.returncode}:\n{done.stderr}")
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def libraries(words: tuple[str, ...]) -> list[str]:
    """Every module of site-packages that this command has loaded at its end."""
    code = (
        f"import sys, io\nfrom sparkloom.cli.program import main\nsys.argv[:] = {['sparkloom', *words]}\n"
        "out, sys.stdout = sys.stdout, io.StringIO()\n"
        "try: main()\nexcept SystemExit: pass\n"
        "there = [n for n, m in sys.modules.items() if 'site-packages' in str(getattr(m, '__file__', ''))]\n"
        "there = [n for n in there if n.partition('.')[0] != 'sparkloom']\n"
        "print(*there, file=out)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    return done.stdout.split()


def per_item(what: str, budget: float, items: list[Any], work: Callable[[Any], object]) -> Figure:
    work(items[0])
    start, cpu = time.perf_counter(), time.process_time()
    for item in items:
        work(item)
    count = len(items)
    wall, spent = time.perf_counter() - start, time.process_time() - cpu
    return Figure(what, wall / count * 1e3, spent / count * 1e3, budget)


def synthetic() -> Iterator[LoadedProfile]:
    """Shipped profiles with other names, images and a flag that differs, without end: no two the same."""
    shipped = [profile.load(name) for name in profile.names()]
    for number, loaded in enumerate(itertools.cycle(shipped)):
        engine = loaded.profile.engine.model_copy(update={"image": f"registry.example/engine:{number}"})
        flags = {**loaded.profile.launch.flags, "served_model_name": f"model-{number}"}
        launch = loaded.profile.launch.model_validate({"parallel": loaded.profile.launch.parallel, **flags})
        changed = loaded.profile.model_copy(update={"engine": engine, "launch": launch})
        yield replace(loaded, name=f"{loaded.name}-{number}", profile=changed)


def large() -> Cluster:
    rails = [rail.model_dump() for rail in load().fabric.rails]
    nodes = [{"name": f"spark{number}"} for number in range(1, 65)]
    return from_vars({"cluster": {"name": "large"}, "fabric": {"rails": rails, "check_vf": 1}, "nodes": nodes})


if __name__ == "__main__":
    main()
