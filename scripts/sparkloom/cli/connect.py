"""`sparkloom connect CLIENT`: the lines to paste so that a program of yours asks what this site serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, named_site
from sparkloom.inputs import inventory
from sparkloom.render import clients
from sparkloom.site import endpoint

ANY, SOME = "MODEL", "CONTEXT"  # stand for what is not known
NO_KEY = "PATH-OF-YOUR-KEY"


def connect(
    client: Annotated[str | None, typer.Argument(help="client program (default: list the known ones)")] = None,
    where: Inventory = None,
    model: Annotated[str | None, typer.Option(help="model name or alias (default: the first that is up)")] = None,
    json: Json = False,
) -> None:
    known = clients.every()
    if client is None:
        show.out([{"client": one.name, "title": one.title, "asks": one.asks} for one in known.values()], json, _listed)
        return
    if client not in known:
        message = f"no client is called {client}{did_you_mean(client, known)}"
        raise InputError.single("sparkloom connect", message, rule="unknown-client")
    filled, data = _told(known[client], where, model)
    head = f"# {data['title']} asks {data['asks']} for {data['model']}"
    notes = [f"note: {note}" for note in data["notes"]]
    show.out(data, json, lambda _: "\n".join([head, filled.lines, *notes]))
    raise typer.Exit(0 if data["models"] else 1)


def _told(client: clients.Client, where: Path | None, model: str | None) -> tuple[clients.Client, dict[str, Any]]:
    where = named_site(where, "which site?")
    reach = endpoint.reach(inventory.load(where), where)
    notes = []
    if reach.key_file is None:
        notes.append(f"{NO_KEY}: this machine has no key of the site; `sparkloom keys add NAME` makes one")
    listed, why = endpoint.models(reach)
    if why:
        notes.append(f"{reach.url} names no models: {why}")
    names = {str(one["id"]): one for one in listed}
    if model and names and model not in names:
        raise InputError.single("--model", f"no model is called {model}; served: {', '.join(names)}", rule="no-model")
    chosen = model or _first(listed)
    longest = names.get(chosen, {}).get("max_model_len") or 0
    if 0 < longest <= client.prompt:
        notes.append(f"its own words are {client.prompt:,} tokens, and {chosen} takes {longest:,}: it will be refused")
    told = {"URL": f"{reach.url}/v1", "MODEL": chosen, "CA": str(reach.ca or ""), "KEY": str(reach.key_file or NO_KEY)}
    told |= {"CONTEXT": str(longest or SOME), "OUTPUT": str(_answer(longest) or f"{SOME}/4")}
    filled = client.filled(told)
    return filled, {
        "client": client.name,
        "title": client.title,
        "asks": reach.url + client.asks,
        "model": chosen,
        "models": list(names),
        "key_file": told["KEY"],
        "ca": told["CA"],
        "shell": filled.shell,
        "file": filled.file,
        "text": filled.text,
        "run": filled.run,
        "notes": notes,
    }


def _answer(context: int) -> int:
    """How long an agent's answer may be: it keeps that much of the context free, and a short one has little room."""
    return context // (4 if context > 1 << 14 else 16)


def _first(listed: list[dict[str, Any]]) -> str:
    """Of those that are up one under its own name, not under an alias."""
    ranked = sorted(listed, key=lambda one: (one.get("state", "up") != "up", "root" in one))
    return str(ranked[0]["id"]) if ranked else ANY


def _listed(rows: list[dict[str, str]]) -> str:
    lines = [f"{row['client']:<12} {row['title']}: asks {row['asks']}" for row in rows]
    return "\n".join([*lines, "", "sparkloom connect CLIENT -i INVENTORY prints what to paste."])
