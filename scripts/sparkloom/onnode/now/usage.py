"""What each person used of each model: what was noted of a router's counters by day, and what came since.

A router counts in memory, and begins with nothing when it starts anew. What was noted of it is in the ConfigMap
`router-usage`, which the controller writes and the page only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.prometheus import samples

NAME, KEY = "router-usage", "usage.json"
KEPT = 400  # days
FAMILIES = {
    "sparkloom_router_requests_total": "requests",
    "sparkloom_router_prompt_tokens_total": "prompt_tokens",
    "sparkloom_router_completion_tokens_total": "completion_tokens",
}
FIGURES = ("requests", "refused", "prompt_tokens", "completion_tokens")

Rows = dict[str, dict[str, int]]  # figures by "person model"


def counted(page: str) -> dict[str, int]:
    """Each series of a router's page, by its name."""
    return {f"{one.name}{{{one.labels}}}": int(one.value) for one in samples(page, FAMILIES)}


def add(rows: Rows, series: Mapping[str, float]) -> Rows:
    """Series as rows, on top of those that are there."""
    for one in samples("\n".join(f"{name} {amount}" for name, amount in series.items()), FAMILIES):
        if not one.value:
            continue
        row = rows.setdefault(f"{one.label('person')} {one.label('model')}", dict.fromkeys(FIGURES, 0))
        row[FAMILIES[one.name]] += round(one.value)
        if (status := one.label("status")) and not status.startswith("2"):
            row["refused"] += round(one.value)
    return rows


def noted(text: str, pages: Mapping[str, str], day: str) -> dict[str, Any]:
    """What was written down, with what came since; `pages`: of each router's container that answers, by its id."""
    before = json_text.mapping(text)
    days, last = dict(before.get("days", {})), dict(before.get("seen", {}))
    seen = {who: counted(page) for who, page in pages.items()}
    for who, figures in seen.items():
        fresh = _since(last.get(who, {}), figures)
        if any(fresh.values()):
            days[day] = add(days.get(day, {}), fresh)
    return {"seen": seen or last, "days": dict(sorted(days.items())[-KEPT:])}


def container(pod: Any) -> str:
    """Which one counts: another container begins with nothing."""
    return str(next((one.container_id for one in pod.status.container_statuses or [] if one.container_id), ""))


def _since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """A figure that is smaller than it was began anew."""
    return {name: value - before.get(name, 0) if value >= before.get(name, 0) else value for name, value in now.items()}


def from_day(kept: Mapping[str, Any], first: str) -> Rows:
    """From a day on, as far as it was noted."""
    rows: Rows = {}
    for day, of_day in kept["days"].items():
        for who, row in of_day.items() if day >= first else ():
            before = rows.get(who, {})
            rows[who] = {figure: before.get(figure, 0) + int(row.get(figure, 0)) for figure in FIGURES}
    return rows


def by_person(rows: Rows) -> list[dict[str, Any]]:
    """By person, then by model."""
    split = ((who.partition(" "), row) for who, row in sorted(rows.items()))
    return [{"person": who[0], "model": who[2], **{figure: row[figure] for figure in FIGURES}} for who, row in split]
