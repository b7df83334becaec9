"""`sparkloom usage`: how much each person used of each model."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json

COUNTED = ("requests", "refused", "prompt_tokens", "completion_tokens")
NOTED = (
    "from the router's own counters and what was noted of them at each look (docs/endpoint.md); what a router "
    "counted after the last look before it ended is not known"
)


def usage(
    since: Annotated[str, typer.Option(help="days to count, today included, such as 7d")] = "7d",
    prometheus: Annotated[
        str | None, typer.Option(metavar="URL", help="read this Prometheus (default: the router itself)")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="list each request to a model, from the router's access log")
    ] = False,
    where: Inventory = None,
    json: Json = False,
) -> None:
    from sparkloom.site import client
    from sparkloom.site import usage as used

    days = _days(since)
    cluster = case.cluster(where)
    first = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=days - 1)
    if each:
        rows, of = client.asked(lambda: used.each(client.of(cluster), first), cluster)
        data = {"site": cluster.name, "since": first.isoformat(), "rows": rows, "of": of}
        return show.out(data, json, _requests)
    if prometheus:
        rows = used.of_prometheus(prometheus, days)
    else:
        rows = client.asked(lambda: used.of_the_router(client.of(cluster), first), cluster)
    data = {
        "site": cluster.name,
        "since": first.isoformat(),
        "source": prometheus or "router",
        "note": "" if prometheus else NOTED,
        "rows": used.by_person(rows),
    }
    show.out(data, json, _table)


def _days(text: str) -> int:
    if not (match := re.fullmatch(r"([1-9]\d{0,2})d", text)):
        raise InputError.single("--since", f"'{text}' is no number of days; write 7d", rule="option")
    return int(match[1])


def _requests(data: dict[str, Any]) -> str:
    names = ("at", "person", "model", "prompt_tokens", "completion_tokens", "status", "ms")
    shown = [tuple(row[name] for name in names) for row in data["rows"]]
    show.table(tuple(name.replace("_", " ") for name in names), shown, dropped=("ms", "status"))
    return f"{len(shown):,} requests since {data['since']}, {data['of']}"


def _table(data: dict[str, Any]) -> str:
    if not data["rows"]:
        told = f"{data['site']}: nothing was asked since {data['since']}, as far as is known: {data['note']}"
        return told.rstrip(": ")
    rows = [
        (row["person"] or "(no key)", row["model"] or "-", *(f"{row[name]:,}" for name in COUNTED))
        for row in data["rows"]
    ]
    columns = ("person", "model", *(f"{name.replace('_', ' ')}>" for name in COUNTED))
    show.table(columns, rows, dropped=("refused>", "prompt tokens>", "requests>"))
    return f"since {data['since']}, {data['note'] or 'as ' + data['source'] + ' saw it'}"
