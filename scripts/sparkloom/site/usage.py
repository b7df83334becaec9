"""What each person used of each model: asked of a Prometheus, or of the router itself and of what was noted of earlier.

A router counts in memory, and begins with nothing when it starts anew. Each look at it (`sparkloom usage`, `keys add`
and `revoke`, playbooks/gateway.yml) notes what came since the last one, by day, in the ConfigMap `router-usage`. What a
router counted after the last look is lost with it, and the day is that of the look.
"""

from __future__ import annotations

import datetime
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.onnode.prometheus import samples
from sparkloom.render.manifests import router as objects
from sparkloom.site import router
from sparkloom.site.client import Client

NAME, KEY = "router-usage", "usage.json"
KEPT = 400  # days
WAIT = 20.0  # seconds for a Prometheus
FAMILIES = {
    "sparkloom_router_requests_total": "requests",
    "sparkloom_router_prompt_tokens_total": "prompt_tokens",
    "sparkloom_router_completion_tokens_total": "completion_tokens",
}
FIGURES = ("requests", "refused", "prompt_tokens", "completion_tokens")

Row = dict[str, int]
Rows = dict[str, Row]  # by "person model"


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


def note(reached: Client, today: datetime.date | None = None) -> dict[str, Any]:
    """What was noted up to now, with what the router's pods counted since the last look."""
    kept = _read(reached)
    day = (today or datetime.datetime.now(datetime.UTC).date()).isoformat()
    seen = {}
    for pod in reached.pods(objects.SELECTOR):
        who, page = _container(pod), router.metrics(reached, str(pod.metadata.name))
        if not who or not page:
            continue
        seen[who] = counted(page)
        fresh = _since(kept["seen"].get(who, {}), seen[who])
        if any(fresh.values()):
            kept["days"][day] = add(kept["days"].get(day, {}), fresh)
    if seen and seen != kept["seen"]:
        kept["seen"] = seen
        kept["days"] = dict(sorted(kept["days"].items())[-KEPT:])
        reached.put_config_map(NAME, {KEY: json.dumps(kept, sort_keys=True)})
    return kept


def _read(reached: Client) -> dict[str, Any]:
    text = (reached.config_map(NAME) or {}).get(KEY, "")
    try:
        kept = json.loads(text) if text else {}
    except ValueError:
        kept = {}
    return {"seen": dict(kept.get("seen", {})), "days": dict(kept.get("days", {}))}


def _container(pod: Any) -> str:
    """Which one counts: another container begins with nothing."""
    return str(next((one.container_id for one in pod.status.container_statuses or [] if one.container_id), ""))


def _since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """A figure that is smaller than it was began anew."""
    return {name: value - before.get(name, 0) if value >= before.get(name, 0) else value for name, value in now.items()}


def of_the_router(reached: Client, first: datetime.date) -> Rows:
    """From a day on, as far as it was noted."""
    rows: Rows = {}
    for day, noted in note(reached)["days"].items():
        for who, row in noted.items() if day >= first.isoformat() else ():
            into = rows.setdefault(who, dict.fromkeys(FIGURES, 0))
            for figure in FIGURES:
                into[figure] += int(row.get(figure, 0))
    return rows


def of_prometheus(url: str, days: int) -> Rows:
    """What it saw the counters grow by: it also knows of routers that are gone. A series' first sample it takes as its
    beginning, so what was counted before it was first asked is not in it."""
    rows: Rows = {}
    for family in FAMILIES:
        by = "person, model, status" if family.endswith("requests_total") else "person, model"
        found = _query(url, f"sum by ({by}) (increase({family}[{days}d]))")
        add(rows, {_name(family, one["metric"]): float(one["value"][1]) for one in found})
    return rows


def _name(family: str, labels: Mapping[str, str]) -> str:
    status = f',status="{labels["status"]}"' if "status" in labels else ""
    return f'{family}{{person="{labels.get("person", "")}",model="{labels.get("model", "")}"{status}}}'


def _query(url: str, query: str) -> Iterable[dict[str, Any]]:
    asked = f"{url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(asked, timeout=WAIT) as answer:
            told = json.load(answer)
        return list(told["data"]["result"])
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError) as error:
        message = f"no answer of a Prometheus: {error}; expected one at --prometheus URL, as http://10.0.0.5:9090"
        raise InputError.single(url, message, rule="no-prometheus") from None


def by_person(rows: Rows) -> list[dict[str, Any]]:
    """By person, then by model."""
    listed = []
    for who, row in sorted(rows.items()):
        person, _, model = who.partition(" ")
        listed.append({"person": person, "model": model, **{figure: row[figure] for figure in FIGURES}})
    return listed
