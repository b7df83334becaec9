#!/usr/bin/env python3
"""Load generators against a pacing server with known truth, all in one run: `.venv/bin/python scripts/bench/load.py`.

200 ms to the first token, 50 tok/s per stream, 256 tokens. CPU: the client's processor seconds per 1,000 output
tokens, start-up included. Overhead: wall time beyond the work itself. RSS: the most of all its processes together.
Errors: the client's mean against what the server really did. --install fetches the peers (gigabytes, once).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(REPO / "scripts" / "bench")]

import peers  # noqa: E402
from origin import origin  # noqa: E402
from peers import Peer  # noqa: E402

COLUMNS = (
    "CPU s/1,000 tokens", "of bare's", "RSS MB", "overhead s", "TTFT error ms", "of bare's", "ITL error ms",
    "tok/s error %",
)  # fmt: skip
CALM = 2.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the peers that are missing first")
    parser.add_argument("--clients", default=",".join(peer.name for peer in peers.PEERS), help="default: all installed")
    parser.add_argument("--streams", default="8,64")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=3, help="the median counts")
    parser.add_argument("--wait", type=float, default=120, help="seconds to wait for a calm machine")
    parser.add_argument("--knobs", default="", help="of the pacing server, as per_chunk=4,reasoning=64")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--from", type=Path, dest="kept", metavar="FILE", help="show what an earlier --json printed")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument(
        "--name", default="this machine", help="which of the page's tables: its mark, and its first words"
    )
    options = parser.parse_args()
    data = json.loads(options.kept.read_text()) if options.kept else measure(options)
    print(json.dumps(data, indent=1) if options.json else text(data))
    if options.write:
        put(options.write, options.name, text(data))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    wanted = options.clients.split(",")
    if options.install:
        peers.install(wanted, sys.stderr.write)
    chosen = [
        peer
        for peer in peers.PEERS
        if peer.name in wanted and (peer is peers.OURS or peer is peers.BARE or peer.installed)
    ]
    calm(options.wait)
    data: dict[str, Any] = {**origin(), "tokens": options.tokens, "knobs": options.knobs, "rows": []}
    for streams in map(int, options.streams.split(",")):
        for peer in chosen:
            sys.stderr.write(f"{peer.name} at {streams}\n")
            runs = [measured(peer, streams, options.tokens, options.knobs) for _ in range(options.repeat)]
            data["rows"].append({"client": peer.name, "streams": streams, **middle(runs), "runs": runs})
    data["load_after"] = round(os.getloadavg()[0], 1)
    return data


def put(page: Path, name: str, table: str) -> None:
    """Between the marks `<!-- load.py: NAME -->` and `<!-- end -->`."""
    before, mark, rest = page.read_text().partition(f"<!-- load.py: {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not mark or not end:
        raise SystemExit(f"{page} has no marks for '{name}'")
    page.write_text(f"{before}{mark}\n{name}, {table}\n\n{end}{after}")


def calm(seconds: float) -> None:
    """Waits for a machine that is fit to be measured on; says so when it is not."""
    until = time.monotonic() + seconds
    while os.getloadavg()[0] > CALM and time.monotonic() < until:
        time.sleep(5)
    if os.getloadavg()[0] > CALM:
        sys.stderr.write(f"load {os.getloadavg()[0]:.1f} is above {CALM}: compare clients with each other, no more\n")


def measured(peer: Peer, streams: int, tokens: int, knobs: str) -> dict[str, float] | None:
    """One client, once, against a fresh server; None when it failed."""
    words = [sys.executable, "-m", "testbed", "pacing", *(knob for knob in knobs.split(",") if knob)]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        words, cwd=REPO, stdout=subprocess.PIPE, text=True
    ) as server:  # fmt: skip
        try:
            assert server.stdout
            port = int(server.stdout.readline().rsplit(" ", 1)[-1])
            return _against(peer, port, streams, tokens, Path(folder))
        except (OSError, ValueError, TypeError, KeyError, StopIteration, subprocess.SubprocessError) as error:
            sys.stderr.write(f"{peer.name} failed: {type(error).__name__} {str(error)[:600]}\n")
            return None
        finally:
            server.terminate()


def _against(peer: Peer, port: int, streams: int, tokens: int, folder: Path) -> dict[str, float]:
    env = {
        **os.environ,
        "HF_HOME": str(peers.HUB),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OPENAI_API_KEY": "none",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a checkout is compiled once, as what pip installs is
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        command = peer.command(port, streams, tokens, folder)
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder, env=env)
        watch = Watch(process.pid)
        code = process.wait(timeout=300)
        wall = time.monotonic() - begun
        out.seek(0)
        err.seek(0)
        output, complaint = out.read(), err.read()
    if code:
        raise ValueError(f"exit {code}: {(complaint or output)[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    truth = _truth(port, streams)
    work = max(request["end"] for request in truth) - min(request["asked"] for request in truth)
    made = sum(sum(request["tokens"]) for request in truth)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cpu_per_1k": 1000 * cpu / made,
        "rss_mb": watch.most / 1024,
        "overhead_s": wall - work,
        **_errors(peer.figures(folder, output), truth),
    }


def _truth(port: int, streams: int) -> list[dict[str, Any]]:
    """The measured requests: the last ones, for some clients try one or two first."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth", timeout=10) as answer:
        requests = [request for request in json.load(answer) if request["sent"] and request["end"]]
    if len(requests) < streams:
        raise ValueError(f"{len(requests)} requests came, {streams} were wanted")
    return sorted(requests, key=lambda request: float(request["asked"]))[-streams:]


def _errors(figures: dict[str, float], truth: list[dict[str, Any]]) -> dict[str, float]:
    spans = [(request["sent"][-1] - request["sent"][0], sum(request["tokens"][1:])) for request in truth]
    first = 1000 * statistics.mean(request["sent"][0] - request["asked"] for request in truth)
    between = 1000 * sum(span for span, _ in spans) / sum(count for _, count in spans)
    speed = statistics.mean(count / span for span, count in spans)
    return {
        "ttft_error_ms": abs(figures["ttft_ms"] - first),
        "itl_error_ms": abs(figures["itl_ms"] - between),
        "tok_s_error_percent": 100 * abs(figures["tok_s"] - speed) / speed,
    }


class Watch(threading.Thread):
    """The most memory that a process and its descendants had together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.most = pid, 0
        self.start()

    def run(self) -> None:
        while sizes := [_rss(pid) for pid in _family(self.pid)]:
            self.most = max(self.most, sum(sizes))
            if not sizes[0]:
                return
            time.sleep(0.1)


def _family(pid: int) -> list[int]:
    family = [pid]
    for member in family:
        for file in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                family += [int(word) for word in file.read_text().split()]
            except OSError:
                continue
    return family


def _rss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def middle(runs: list[dict[str, float] | None]) -> dict[str, float | None]:
    good = [run for run in runs if run]
    keys = ("cpu_per_1k", "rss_mb", "overhead_s", "ttft_error_ms", "itl_error_ms", "tok_s_error_percent")
    return {key: statistics.median(run[key] for run in good) if good else None for key in keys}


def text(data: dict[str, Any]) -> str:
    """A Markdown table, every client's figures also as a multiple of the bare one's in the same run."""
    known = ", ".join(
        f"{key.replace('_', ' ')} {data[key]}"
        for key in ("commit", "python", "cpus", "load", "load_after")
        if key in data
    )
    head = f"{data['date']} ({known}), median of {len(data['rows'][0]['runs'])}:"
    lines = [head, "", f"| client | streams | {' | '.join(COLUMNS)} |", "|--" * (len(COLUMNS) + 2) + "|"]
    bare = {row["streams"]: row for row in data["rows"] if row["client"] == peers.BARE.name}
    for row in data["rows"]:
        limit = bare.get(row["streams"])
        cells = [
            _cell(row["cpu_per_1k"], 3), _ratio(row, limit, "cpu_per_1k"), _cell(row["rss_mb"], 0),
            _cell(row["overhead_s"], 1), _cell(row["ttft_error_ms"], 2), _ratio(row, limit, "ttft_error_ms"),
            _cell(row["itl_error_ms"], 4), _cell(row["tok_s_error_percent"], 3),
        ]  # fmt: skip
        lines.append(f"| {row['client']} | {row['streams']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, digits: int) -> str:
    return "failed" if value is None else f"{value:.{digits}f}"


def _ratio(row: dict[str, Any], bare: dict[str, Any] | None, key: str) -> str:
    if not bare or row[key] is None or not bare[key]:
        return "-"
    return f"{row[key] / bare[key]:.2f}"


if __name__ == "__main__":
    main()
