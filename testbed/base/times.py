"""How long steps took, cold and warm: here (in the cache) or on the machine of docs/reference/times.md (shipped)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from datetime import date

from testbed.base import names, store

FILE = names.CACHE / "times.json"
JUDGED_BY = 20.0  # seconds of shipped steps: fewer say nothing of a machine
SHIPPED = names.KIND_DIR / "times.json"  # written by `python -m testbed rack times --ship` after a cold run
_ONE_AT_A_TIME = threading.Lock()  # steps that go on aside


@dataclass(frozen=True)
class Usual:
    seconds: float
    where: str  # how to say whose time this is


def _seconds(entry: object, kind: str) -> float | None:
    value = entry.get(kind) if isinstance(entry, dict) else None
    seconds = value.get("seconds") if isinstance(value, dict) else None
    return float(seconds) if isinstance(seconds, (int, float)) else None


def pace() -> float | None:
    """How much longer this machine took than the one of the shipped times, by the steps that both have done cold."""
    mine, shipped = store.read_json(FILE), store.read_json(SHIPPED).get("steps", {})
    both = [(_seconds(mine.get(name), "cold"), _seconds(entry, "cold")) for name, entry in shipped.items()]
    known = [(ours, published) for ours, published in both if ours is not None and published is not None]
    published = sum(pair[1] for pair in known)
    return sum(pair[0] for pair in known) / published if published >= JUDGED_BY else None


def expected(name: str, warm: bool = False) -> Usual | None:
    """This machine's last time; else the shipped one, of a cold step only, at this machine's pace once known."""
    kind = "warm" if warm else "cold"
    mine = _seconds(store.read_json(FILE).get(name), kind)
    if mine is not None:
        return Usual(mine, "last time")
    shipped = store.read_json(SHIPPED)
    published = _seconds(shipped.get("steps", {}).get(name), kind)
    if published is None:
        return None
    if slower := pace():
        return Usual(published * slower, "by what this machine took until now")
    return Usual(published, f"on {shipped.get('machine', {}).get('cores')} cores")


def record(name: str, seconds: float, warm: bool = False) -> None:
    taken = {"seconds": round(seconds, 1), "date": date.today().isoformat()}
    with _ONE_AT_A_TIME:
        known = store.read_json(FILE)
        kept = {kind: value for kind, value in known.get(name, {}).items() if kind in ("cold", "warm")}
        known[name] = {**kept, "warm" if warm else "cold": taken}
        store.write_json(FILE, known)


def ship(order: list[str]) -> None:
    """Keep this machine's cold times with the sources, for others' first run; a step without one keeps what it has."""
    mine, shipped = store.read_json(FILE), store.read_json(SHIPPED).get("steps", {})
    cold = {name: (mine if _seconds(mine.get(name), "cold") is not None else shipped).get(name, {}) for name in order}
    steps = {name: {"cold": entry["cold"]} for name, entry in cold.items() if "cold" in entry}
    store.write_json(SHIPPED, {"machine": {"cores": os.cpu_count()}, "steps": steps})


def table(order: list[str]) -> str:
    """Markdown for docs/reference/times.md."""
    known = store.read_json(FILE)
    rows = ["| step | cold, s | warm, s | measured |", "|--|--|--|--|"]
    total = 0.0
    for name in order:
        cold, warm = _seconds(known.get(name), "cold"), _seconds(known.get(name), "warm")
        total += cold or 0.0
        days = {str(v.get("date")) for v in known.get(name, {}).values() if isinstance(v, dict)}
        cells = ["" if value is None else f"{value:.1f}" for value in (cold, warm)]
        rows.append(f"| {name} | {cells[0]} | {cells[1]} | {', '.join(sorted(days))} |")
    rows.append(f"| **sum of the cold steps** | **{total:.0f}** | | |")
    return "\n".join(rows)
