"""The result file: one JSON for a run, written whole after every level, and the table that people read."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import files
from sparkloom.base import table as tables
from sparkloom.measure.bench.run import Run, label
from sparkloom.measure.bench.schedule import Schedule

COLUMNS = (
    "level", "ok>", "tokens>", "TTFT ms p50>", "p95>", "ITL ms p50>", "p99>", "tok/s each>", "sum>", "wall>", "accept>",
    "guard>",
)  # fmt: skip
DROPPED = ("accept>", "p99>", "p95>", "wall>", "ITL ms p50>", "tokens>")  # in a narrow window, in that order


def document(run: Run, provenance: Mapping[str, Any]) -> dict[str, Any]:
    problems = list(run.problems())
    return {
        "format": 1,
        "model": run.model,
        "valid": run.complete and not problems,
        "complete": run.complete,
        "problems": problems,
        "levels": run.levels,
        "provenance": dict(provenance),
    }


def path(folder: Path, model: str) -> Path:
    """A name of its own for every run."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "--", model).strip(".-")[:80] or "model"
    return folder / f"bench-{slug}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"


def write(file: Path, data: Mapping[str, Any]) -> None:
    """Whole or not at all: a run that is killed leaves its last finished level."""
    with files.writable(file, "-o names another folder"):
        files.write(file, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def client(begun: float) -> dict[str, Any]:
    """What this program itself took: a load generator that starves has no say."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    wall = time.monotonic() - begun
    return {
        "cpu_s": round(cpu, 3),
        "cpu_share": round(cpu / wall, 3) if wall > 0 else None,
        "rss_mib": _most_memory_mib(),
        "load_average": round(os.getloadavg()[0], 2),
        "cpus": os.cpu_count(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def _most_memory_mib() -> float | None:
    """The kernel's high-water mark; what getrusage says begins at the size of the program that started this one."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # not Linux
        return None
    return next((round(int(line.split()[1]) / 1024, 1) for line in lines if line.startswith("VmHWM:")), None)


def table(data: Mapping[str, Any], wide: int = 0) -> str:
    """`wide`: columns of the window, which may lose some."""
    lines = tables.lines(COLUMNS, map(_row, data["levels"]), wide, DROPPED)
    return "\n".join([*lines, *_notes(data)]) + "\n"


def _row(level: Mapping[str, Any]) -> list[str]:
    guard = level["guard"]
    mark = "~" if level["estimated"] else ""
    return [
        label(dict(level)) + (" (partial)" if level["partial"] else ""),
        f"{level['ok']}/{level['requests']}",
        f"{mark}{level['output_tokens']:,}",
        _number(level["ttft_ms"]["p50"], 0),
        _number(level["ttft_ms"]["p95"], 0),
        _number(level["itl_ms"]["p50"], 1),
        _number(level["itl_ms"]["p99"], 1),
        mark + _number(level["decode_tok_s"], 2),
        mark + _number(level["sum_tok_s"], 1),
        mark + _number(level["wall_tok_s"], 1),
        _number(level["accept_length"], 2),
        guard["verdict"] + (f": {guard['kind']}" if guard["kind"] else ""),
    ]


def _notes(data: Mapping[str, Any]) -> list[str]:
    levels, origin = data["levels"], data["provenance"]
    lines = []
    if any(level["estimated"] for level in levels):
        lines.append("~ not every request came with the engine's token count; per_request[].tokens_from says which")
    if any(level["mode"] == "closed" for level in levels):
        lines.append(
            "sum: tok/s of the single requests added up (what posts call peak); wall: all tokens over all time"
        )
    lines += [
        f"{label(level)}: at most {most} of {level['concurrency']} were answered at once, the others waited; "
        "sum says more than the engine made"
        for level in levels
        if (most := level["at_once"]) and most < min(level["concurrency"], level["ok"])
    ]
    lines += [
        f"{label(level)}: prompts of {level['prompt_tokens']:,.0f} tokens, {level['prompt_tok_s']:,.0f} a second until "
        "the answer's first"
        for level in levels
        if level.get("depth") and level.get("prompt_tok_s")
    ]
    lines += [
        f"{label(level)}: GPUs at {gpus['mhz']:.0f} MHz or more, at most {gpus['celsius']:.0f} degrees"
        for level in levels
        if (gpus := level["engine"].get("gpus"))
    ]
    lines += [f"{label(level)}: {_called(told)}" for level in levels if (told := level.get("tool_calls"))]
    lines += [f"{label(level)}: {note}" for level in levels if (note := level["engine"].get("note"))]
    lines += [f"{label(level)}: {doubt}" for level in levels if (doubt := level["guard"].get("doubt"))]
    if group := origin.get("group"):
        lines.append(
            f"of which group: {group}, on {', '.join(origin.get('sparks') or ()) or 'Sparks that are not known'}"
        )
    lines.append(f"over which rails: {_said(origin.get('transport'))}")
    lines += [f"not valid: {problem}" for problem in data["problems"]]
    return lines


def _called(told: Mapping[str, Any]) -> str:
    wrong = "".join(f"; {count}: {what}" for what, count in told["wrong"].items())
    return f"{told['valid']} of {told['answers']} answers are tool calls that can be carried out{wrong}"


def _said(value: Any) -> str:
    return f"{value['verdict']}, {value['why']}" if isinstance(value, dict) and "verdict" in value else str(value)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


class Progress:
    """On a terminal one line that changes; else a line at the beginning of each part and every ten seconds."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._live = bool(stream and stream.isatty())
        self._said = self._at = self._began = 0.0
        self._name, self._chunks = "", 0

    def __call__(self, name: str, schedule: Schedule | None) -> None:
        now = time.monotonic()
        if schedule is None:
            if self._live:
                self._stream.write("\r\x1b[2K")
                self._stream.flush()
            return
        chunks = sum(len(request.times) for request in schedule.requests)
        if name != self._name:
            self._name, self._began, self._at, self._chunks, self._said = name, now, now, chunks, 0.0
        if now - self._said < (0.4 if self._live else 10.0):
            return
        rate = (chunks - self._chunks) / (now - self._at) if now > self._at else 0.0
        self._said, self._at, self._chunks = now, now, chunks
        failed = sum(1 for request in schedule.requests if request.error)
        line = (
            f"{name}  {now - self._began:.0f} s  {schedule.ended} of {schedule.total} done, {schedule.running} running"
            f"{f', {failed} failed' if failed else ''}, {chunks:,} chunks, {rate:,.0f} a second"
        )
        self._stream.write(f"\r\x1b[2K{line}" if self._live else line + "\n")
        self._stream.flush()
