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

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.onnode.now.usage import FAMILIES, KEY, NAME, Rows, add, container, from_day, noted
from sparkloom.onnode.now.usage import by_person as by_person
from sparkloom.render.manifests import router as objects
from sparkloom.render.router import Terms
from sparkloom.site import router
from sparkloom.site.client import Client

EACH = ("at", "person", "model", "prompt_tokens", "completion_tokens", "path", "status", "ms", "flags")
WAIT = 20.0  # seconds for a Prometheus


def note(reached: Client, today: datetime.date | None = None) -> dict[str, Any]:
    """What was noted up to now, with what the router's pods counted since the last look."""
    day = (today or datetime.datetime.now(datetime.UTC).date()).isoformat()
    before = (reached.config_map(NAME) or {}).get(KEY, "")
    pods = [pod for pod in reached.pods(objects.SELECTOR) if container(pod)]
    pages = {container(pod): router.metrics(reached, str(pod.metadata.name)) for pod in pods}
    kept = noted(before, {who: page for who, page in pages.items() if page}, day)
    if (written := json.dumps(kept, sort_keys=True)) != before:
        reached.put_config_map(NAME, {KEY: written})
    return kept


def of_the_router(reached: Client, first: datetime.date) -> Rows:
    return from_day(note(reached), first.isoformat())


def each(reached: Client, first: datetime.date) -> tuple[list[dict[str, Any]], str]:
    """Each request of a model that the log beside the router's pod still has, in order of time, and where that is. The
    router's program writes it: what is no line of ours is passed over."""
    file = Terms().log
    words = ["/bin/bash", "-c", 'cat "$0.1" "$0" 2>/dev/null; true', file]
    running = {pod.spec.node_name: pod.metadata.name for pod in reached.pods(objects.SELECTOR) if container(pod)}
    lines = [line for pod in running.values() for line in reached.ask(pod, words, WAIT).splitlines()]
    rows = [{name: str(row.get(name, "")) for name in EACH} for row in map(json_text.mapping, lines)]
    nodes = ", ".join(sorted(running)) or "no Spark: the router has no pod"
    where = f"of {nodes}; a Spark where it ran before has {file}"
    return sorted((row for row in rows if row["at"] >= first.isoformat()), key=lambda row: row["at"]), where


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
