#!/usr/bin/env python3
"""Which router could be the one endpoint of several models: `.venv/bin/python scripts/bench/router.py`.

Every candidate runs on loopback before stand-in engines (testbed/standins/pacing) and is asked for each behaviour;
then 64 streams pass it, in turns with none. --install fetches the candidates (half a gigabyte, once). --keep FILE adds
to what an earlier run found, so that behaviours and speed may be measured apart; --write puts the tables into the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(REPO / "scripts" / "bench")]

import router_candidates  # noqa: E402
import router_probes  # noqa: E402
import router_rig  # noqa: E402
import router_speed  # noqa: E402
from origin import origin  # noqa: E402

PAGE = REPO / "docs" / "reference" / "routers.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="fetch the candidates that are missing first")
    parser.add_argument("--only", default="", help="these candidates, with commas (default: all that are there)")
    parser.add_argument("--no-probes", action="store_true", help="only speed")
    parser.add_argument("--no-speed", action="store_true", help="only behaviours")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--large", type=int, default=4, help="bodies of a megabyte a second beside the streams")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON of all runs: read first, written at the end")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/reference/routers.md")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    chosen = [one for one in router_candidates.ALL if not wanted or one.name in wanted]
    if options.install:
        router_candidates.install(chosen, sys.stderr.write)
    data = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    for candidate in (one for one in chosen if one.installed):
        row = data.setdefault(candidate.name, {})
        row.update(version=candidate.version, what=candidate.what, image=candidate.image)
        try:
            if not options.no_probes:
                row["probes"] = {**probed(candidate), "origin": origin()}
            if not options.no_speed:
                row["speed"] = {**timed(candidate, options), "origin": origin(), "streams": options.streams}
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            sys.stderr.write(f"{candidate.name}: {type(error).__name__} {error}\n")
            row["failed"] = str(error)[:300]
    if options.keep:
        options.keep.write_text(json.dumps(data, indent=1))
    print(tables(data))
    if options.write:
        for part, text in (("behaviours", behaviours(data)), ("speed", speeds(data))):
            if text:  # what was not measured keeps its table
                put(part, text)


def probed(candidate: router_candidates.Candidate) -> dict[str, str]:
    sys.stderr.write(f"{candidate.name}: behaviours\n")
    with tempfile.TemporaryDirectory() as folder, router_rig.engines() as engines:
        rig = router_rig.Rig(candidate, engines, Path(folder))
        try:
            if not rig.ready("alpha"):
                raise RuntimeError(f"no answer through it: {rig.ask('alpha')} {rig.said()}")
            rig.ready("beta", 10)
            return router_probes.all_of(rig)
        finally:
            rig.close()


def timed(candidate: router_candidates.Candidate, options: argparse.Namespace) -> dict[str, Any]:
    sys.stderr.write(f"{candidate.name}: speed\n")
    with tempfile.TemporaryDirectory() as folder, router_rig.engines("alpha", "beta") as engines:
        rig = router_rig.Rig(candidate, engines, Path(folder))
        try:
            if not (rig.ready("alpha") and rig.ready("beta")):
                raise RuntimeError(f"no answer through it: {rig.said()}")
            return router_speed.turns(rig, engines, options)
        finally:
            rig.close()


def told(where: dict[str, Any]) -> str:
    return f"{where['date']} (commit {where['commit']}, {where['cpus']} cores, load {where['load']})"


def behaviours(data: dict[str, Any]) -> str:
    """A Markdown table: a behaviour a row, a candidate a column."""
    rows = {name: row for name, row in data.items() if "probes" in row}
    if not rows:
        return ""
    origins = [row["probes"]["origin"] for row in rows.values()]
    heads = " | ".join(f"{name} {row['version']}" for name, row in rows.items())
    lines = [f"{told(origins[-1])}:", "", f"| | {heads} |"]
    lines.append("|--" * (len(rows) + 1) + "|")
    for name in router_probes.PROBES:
        lines.append(f"| {name} | {' | '.join(row['probes'].get(name, '-') for row in rows.values())} |")
    return "\n".join(lines)


def speeds(data: dict[str, Any]) -> str:
    """What each adds, in ms: percentiles with it less those without, from the same minutes."""
    rows = {name: row for name, row in data.items() if "speed" in row}
    if not rows:
        return ""
    one = next(iter(rows.values()))["speed"]
    lines = [
        f"{told(one['origin'])}, {one['streams']} streams of 50 tok/s:",
        "",
        "| | added to the first token, p50 / p99 ms | to each other one, p50 / p99 ms "
        "| the same beside bodies of 1 MB, p99 ms | CPU s/1,000 tokens | cores | RSS MB |",
        "|--" * 7 + "|",
    ]
    none = [row["speed"]["none"] for row in rows.values()]
    base = {key: router_speed.middle([run[key] for run in none]) for key in none[0]}
    shown = " | ".join(f"{base[f'{w}_p50']:.2f} / {base[f'{w}_p99']:.2f}" for w in ("first", "other"))
    lines.append(f"| (none: the way itself) | {shown} | | | | |")
    for name, row in rows.items():
        at, less, large = row["speed"]["router"], row["speed"]["none"], row["speed"]["large"]
        cells = [
            " / ".join(f"{at[f'{what}_{p}'] - less[f'{what}_{p}']:.2f}" for p in ("p50", "p99"))
            for what in ("first", "other")
        ]
        cells += [f"{large['other_p99'] - less['other_p99']:.2f}", f"{at['cpu_per_1k']:.3f}", f"{at['cores']:.2f}"]
        lines.append(f"| {name} {row['version']} | {' | '.join(cells)} | {at['rss_mb']:.0f} |")
    return "\n".join(lines)


def tables(data: dict[str, Any]) -> str:
    return "\n\n".join(part for part in (behaviours(data), speeds(data)) if part)


def put(name: str, table: str) -> None:
    """Between the marks `<!-- router.py: NAME -->` and `<!-- end -->`."""
    before, mark, rest = PAGE.read_text().partition(f"<!-- router.py: {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not mark or not end:
        raise SystemExit(f"{PAGE} has no marks for '{name}'")
    PAGE.write_text(f"{before}{mark}\n{table}\n\n{end}{after}")


if __name__ == "__main__":
    main()
