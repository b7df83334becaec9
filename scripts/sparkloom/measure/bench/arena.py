"""A result as Spark Arena's benchmark.csv: the columns that its own runner writes, two rows for each closed level.

`ppN @ dD (cC)` is the prompt's row, `tgN @ dD (cC)` the answer's. Peaks are left empty: they are the most tokens of any
one second, which this client does not count.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.base import files

COLUMNS = (
    "model", "test_name", "t_s_mean", "t_s_std", "t_s_req_mean", "t_s_req_std", "peak_ts_mean", "peak_ts_std",
    "peak_ts_req_mean", "peak_ts_req_std", "ttfr_mean", "ttfr_std", "est_ppt_mean", "est_ppt_std", "e2e_ttft_mean",
    "e2e_ttft_std",
)  # fmt: skip
# What the profile spark-arena-v2 asks for, in our words.
PROFILE = "-n 1,2,5,10 --depth 0,4k,8k,16k,32k,65535,100000 --prompt-tokens 2048 --max-tokens 128 --ignore-eos"


def write(file: Path, data: Mapping[str, Any]) -> None:
    with files.writable(file, "--submit names another file"):
        files.write(file, text(data))


def text(data: Mapping[str, Any]) -> str:
    levels = [level for level in data["levels"] if level["mode"] == "closed" and level["ok"]]
    several = max((level["concurrency"] for level in levels), default=1) > 1
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=COLUMNS)
    writer.writeheader()
    for level in levels:
        writer.writerows(_rows(data["model"], level, several))
    return buffer.getvalue()


def _rows(model: str, level: Mapping[str, Any], several: bool) -> Iterable[dict[str, Any]]:
    good = [request for request in level["per_request"] if request["ok"]]
    depth = level.get("depth") or 0
    where = (f" @ d{depth}" if depth else "") + (f" (c{level['concurrency']})" if several else "")
    prompted = [request["prompt_tokens"] for request in good if request["prompt_tokens"] and request["ttft_ms"]]
    waits = [request["ttft_ms"] for request in good if request["prompt_tokens"] and request["ttft_ms"]]
    if prompted:
        own = max(1, round(statistics.mean(prompted)) - depth)
        each = [1000 * count / wait for count, wait in zip(prompted, waits, strict=True)]
        first = {f"{name}_{kind}": value for name in ("ttfr", "est_ppt", "e2e_ttft") for kind, value in _of(waits)}
        total = [1000 * sum(prompted) / max(waits)]
        yield _row(model, f"pp{own}{where}", total, each) | first
    answered = [request["tokens_per_sec"] for request in good if request["tokens_per_sec"]]
    if answered:
        length = round(statistics.mean(request["output_tokens"] for request in good))
        yield _row(model, f"tg{length}{where}", [_while_answering(good)], answered)


def _while_answering(good: Sequence[Mapping[str, Any]]) -> float:
    """All tokens over the time from the first one of any request to the last one of any."""
    begun = min(request["ttft_ms"] for request in good)
    ended = max(request["e2e_ms"] for request in good)
    return 1000 * sum(request["output_tokens"] for request in good) / (ended - begun) if ended > begun else 0.0


def _row(model: str, name: str, total: Sequence[float], each: Sequence[float]) -> dict[str, Any]:
    figures = {f"t_s_{kind}": value for kind, value in _of(total)}
    figures |= {f"t_s_req_{kind}": value for kind, value in _of(each)}
    return {"model": model, "test_name": name, **figures}


def _of(values: Sequence[float]) -> tuple[tuple[str, float], tuple[str, float]]:
    return ("mean", round(statistics.mean(values), 3)), ("std", round(statistics.pstdev(values), 3))
