"""What perftest's programs print, read by the names of their columns: those differ between releases and options."""

from __future__ import annotations

import re
from dataclasses import dataclass

BANDWIDTH, LATENCY = "ib_write_bw", "ib_write_lat"
# Lines that say why a run failed, the telling ones first; perftest adds several generic ones around them.
REASONS = (
    r"Network is unreachable",
    r"Couldn't connect to .*",
    r"transport retry counter exceeded|Completion with error.*|Failed status \d+.*",
    r"Failed to modify QP.*",
    r"(?:Unable to find|No IB devices|IB device \S+ not found).*",
    r"Cannot allocate memory.*",
)


@dataclass(frozen=True, slots=True)
class Result:
    """One run as its client printed it."""

    device: str
    mtu: int  # of the RDMA path, in bytes: 4096 fits a frame of 9000, 1024 one of 1500
    gbit: float | None = None
    microseconds: float | None = None


def read(text: str) -> Result | None:
    """None where a run did not get to its row of figures."""
    row = _row(text)
    if row is None:
        return None
    return Result(
        device=_fact(text, r"Device\s*:\s*(\S+)") or "",
        mtu=int(_fact(text, r"Mtu\s*:\s*(\d+)\[B\]") or 0),
        gbit=row.get("BW_average[Gb/sec]"),
        microseconds=row.get("t_typical[usec]", row.get("t_avg[usec]")),
    )


def why(text: str) -> str:
    """The line that tells why there is no result."""
    for reason in REASONS:
        found = re.search(reason, text)
        if found:
            return found.group(0).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return lines[-1] if lines else "it printed nothing"


def _row(text: str) -> dict[str, float] | None:
    lines = text.splitlines()
    for number, line in enumerate(lines[:-1]):
        if not line.lstrip().startswith("#bytes"):
            continue
        names = re.sub(r"\b(BW|99(?:\.9)?%) (?=peak|average|percentile)", r"\1_", line).split()
        try:
            values = [float(word) for word in lines[number + 1].split()]
        except ValueError:
            return None
        return dict(zip(names, values, strict=False)) if values else None
    return None


def _fact(text: str, pattern: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None
