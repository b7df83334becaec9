"""`sparkloom keys add|list|renew|revoke`: who may ask this site's models. A key is shown once, and its hash is kept.

What changed is brought to the router at once, where the site has one that answers.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from sparkloom.base.errors import InputError
from sparkloom.base.finding import ranked
from sparkloom.cli import show, show_findings
from sparkloom.cli.options import Inventory, Json, named_site
from sparkloom.inputs import client_keys, inventory
from sparkloom.inputs.client_keys import Key
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import Entry
from sparkloom.onnode.kube import JSON
from sparkloom.render import keys as secrets
from sparkloom.site import keyring

SECONDS = 5.0  # for a cluster that is asked what the page made
BRINGS = "playbooks/gateway.yml will bring it"
Offline = Annotated[
    bool, typer.Option("--offline", help="use only the file, not the cluster; playbooks/gateway.yml applies it")
]
Name = Annotated[str, typer.Argument(help="the person: small letters, digits and ._@-")]


def add(
    name: Name,
    models: Annotated[str | None, typer.Option(help="names or aliases, separated by commas (default: all)")] = None,
    requests: Annotated[int | None, typer.Option(help="requests a minute (default: no limit)")] = None,
    tokens: Annotated[int | None, typer.Option(help="tokens a minute, prompt and answer together")] = None,
    expires: Annotated[
        str | None, typer.Option(help="last valid day: 2027-01-31, or 90d from today (default: never)")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="may also act on the site's page: keys, groups, logs")] = False,
    offline: Offline = False,
    where: Inventory = None,
    json: Json = False,
) -> None:
    file, today = _file(where), _now().date()
    _not_the_site_s(name)
    text = key_table.generate()
    key = _key(
        name=name,
        hash=client_keys.hashed(text),
        expires=_last_day(expires, today),
        models=_opened(models),
        requests_per_minute=requests,
        tokens_per_minute=tokens,
        made=today.isoformat(),
        admin=admin,
    )
    keyring.add(file, key)
    _hand_over(key, text, _shown_once(key, text, file), where, offline, json)


def renew(name: Name, offline: Offline = False, where: Inventory = None, json: Json = False) -> None:
    file, text = _file(where), key_table.generate()
    key = client_keys.renewed(client_keys.read(file)[1], name, text, _now().date())
    if key is None:
        raise InputError.single(str(file), f"no key is called '{name}'", rule="no-such-key")
    own = _own_file(where) if name == key_table.OWNER else None
    if own:
        secrets.write(own, text + "\n")
    keyring.put(file, key)
    shown = f"{own} has the site's own key, which ends with {key.expires}" if own else _shown_once(key, text, file)
    _hand_over(key, "" if own else text, shown, where, offline, json)


def _hand_over(key: Key, text: str, shown: str, where: Path | None, offline: bool, json: bool) -> NoReturn:
    if not json:  # at once: whoever loses patience with the cluster has it
        show.words(f"{shown}\n")
    brought = _bring(where, file := _file(where), offline)
    told = {**_row(key), "file": str(file), "key": text, **brought.as_dict()}
    show.out(told, json, lambda _: brought.said)
    raise typer.Exit(0 if brought.fine else 1)


def _own_file(where: Path | None) -> Path:
    """Where this machine keeps the site's own key."""
    from sparkloom.site import endpoint

    if key_file := endpoint.reach(inventory.load(where), where).key_file:
        return key_file
    message = "this machine has no key of this site; expected one by playbooks/gateway.yml (gateway_key_file)"
    raise InputError.single(key_table.OWNER, message, rule="no-such-key")


def _not_the_site_s(name: str) -> None:
    if name == key_table.OWNER:
        message = (
            f"'{name}' is the site's own key: `sparkloom keys renew {name}` makes another, keys.yml has its limits"
        )
        raise InputError.single("NAME", message, rule="reserved-name")


def list_(offline: Offline = False, where: Inventory = None, json: Json = False) -> None:
    file = _file(where)
    source, keys = client_keys.read(file)
    found = ranked(client_keys.findings(file, source, keys, _now()))
    given, unknown = _given(where) if not offline else ([], "")
    taken = {one.hash: one.taken for one in given}
    rows = [{**_row(key), "revoked_by": taken.get(key.entry.hash) or None} for key in keys]
    rows += [{**_row(client_keys.of_entry(one)), "made_by": one.by} for one in given if one.by]
    data = {"file": str(file), "keys": rows, "findings": [one.as_dict() for one in found], "page": unknown or None}
    show.out(data, json, _table)
    raise typer.Exit(1 if any(one.severity == "error" for one in found) else 0)


def revoke(name: Name, offline: Offline = False, where: Inventory = None, json: Json = False) -> None:
    file = _file(where)
    _not_the_site_s(name)
    on_the_page = not offline and any(one.by and one.name == name for one in _given(where)[0])
    listed = any(key.name == name for key in client_keys.read(file)[1])
    key = keyring.revoke(file, name) if listed or not on_the_page else None
    brought = _bring(where, file, offline, revoked=name)
    told = {**(_row(key) if key else {"name": name}), "file": str(file), **brought.as_dict()}
    show.out(told, json, lambda _: f"{file} has no key of {name} any more\n{brought.said}")
    raise typer.Exit(0 if brought.fine else 1)


class Brought(NamedTuple):
    """Since when the router goes by a change, or why it does not yet; `fine` unless a cluster did not take it."""

    said: str
    seconds: float | None = None
    fine: bool = True

    def as_dict(self) -> dict[str, Any]:
        return {"effective_seconds": self.seconds, "router": self.said}


def _given(where: Path | None) -> tuple[list[Entry], str]:
    """The keys that the router has, with what was made and taken on the page; or why that is not known."""
    from sparkloom.site import client, patience

    cluster = inventory.load(where)
    if not Path(client.kubeconfig(cluster)).is_file():
        return [], ""
    try:
        reached = client.of(cluster)
        reached.core.api_client.configuration.retries = False  # the file is told in any case, at once
        kept = client.or_none(lambda: reached.api(key_table.path(cluster.namespace), {}, JSON, SECONDS))
        return key_table.of_secret(kept or {}), ""
    except Exception as error:
        if not (said := patience.trouble(error)):
            raise
        return [], said


def _bring(where: Path | None, file: Path, offline: bool, revoked: str = "") -> Brought:
    if offline:
        return Brought(f"the router was not told (--offline): {BRINGS}")
    from sparkloom.site import client, patience, router, usage

    cluster = inventory.load(where)
    if not Path(client.kubeconfig(cluster)).is_file():
        return Brought(f"no cluster is known here ({client.kubeconfig(cluster)} is not there): {BRINGS}")
    try:
        reached = client.of(cluster)
        given = router.push(reached, file, lambda text: print(text, file=sys.stderr), revoked)
        if given is None:
            return Brought(f"this site has no router yet: {BRINGS}")
        usage.note(reached)
    except Exception as error:
        said = str(error.problems[0]) if isinstance(error, InputError) else patience.trouble(error)
        if not said:
            raise
        return Brought(f"the file is written, the router was not told: {said}; {BRINGS}", fine=False)
    if given.seconds is None:
        pods = f"kubectl -n {cluster.namespace} get pods -l app.kubernetes.io/name=router"
        said = f"its files are changed, and no router runs that could go by them: {pods}"
        return Brought(said, fine=False)
    return Brought(f"the router goes by it since {given.seconds:.1f} s after it was told", round(given.seconds, 1))


def _file(where: Path | None) -> Path:
    where = named_site(where, "whose keys?")
    inventory.require_own(inventory.load(where).example)
    return client_keys.place(inventory.folder_of(where))


def _opened(models: str | None) -> list[str] | str:
    named = [word.strip() for word in ("all" if models is None else models).split(",") if word.strip()]
    if not named:  # a script's empty variable must not open every model
        raise InputError.single("--models", "expected a name or an alias; leave it out for all", rule="option")
    return "all" if named == ["all"] else named


def _key(**said: Any) -> Key:
    """Judged by the same words as a line of the file."""
    from pydantic import ValidationError

    try:
        return Key(**said)
    except ValidationError as error:
        first = error.errors()[0]
        what = str(first["loc"][0]) if first["loc"] else "the key"
        message = f"{what}: {str(first['msg']).removeprefix('Value error, ')} (found {first['input']!r})"
        raise InputError.single("sparkloom keys add", message, rule="bad-key") from None


def _last_day(expires: str | None, today: datetime.date) -> str | None:
    try:
        return client_keys.days(expires, today) if expires else None
    except ValueError as error:
        raise InputError.single("--expires", str(error), rule="option") from None


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _row(key: Key) -> dict[str, Any]:
    """Without the hash: nobody needs to see it, and it is in the file."""
    return {**key.model_dump(exclude={"hash"}), "made_by": None, "revoked_by": None, "ended": key.ended(_now())}


def _shown_once(key: Key, text: str, file: Path) -> str:
    ends = f"until {key.expires}" if key.expires else "without an end"
    models = "all models" if key.models == "all" else ", ".join(key.models)
    limits = [
        f"{limit:,} {what} a minute"
        for limit, what in ((key.requests_per_minute, "requests"), (key.tokens_per_minute, "tokens"))
        if limit
    ]
    return (
        f"{text}\n\nThis is the key of {key.name} for {models}, {ends}, {' and '.join(limits) or 'without a limit'}. "
        f"It is shown this once: {file} has its hash."
    )


def _table(data: dict[str, Any]) -> str:
    terminal, rows = show.console(), []
    for key in data["keys"]:
        models = key["models"] if key["models"] == "all" else ", ".join(key["models"])
        limits = [f"{key[name]:,}" if key[name] else "-" for name in ("requests_per_minute", "tokens_per_minute")]
        ends = f"{key['expires']} (over)" if key["ended"] else key["expires"] or "-"
        ends = f"revoked by {key['revoked_by']}" if key["revoked_by"] else ends
        made = f"on the page by {key['made_by']}" if key["made_by"] else key["made"] or "-"
        rows.append((key["name"], models, *limits, ends, made, "yes" if key["admin"] else "-"))
    if not data["keys"]:
        return f"{data['file']}: no keys yet; `sparkloom keys add NAME -i INVENTORY` makes one"
    columns = ("name", "models", "requests/min>", "tokens/min>", "expires", "made", "admin")
    show.table(columns, rows, dropped=("made", "tokens/min>", "requests/min>"))
    if data["page"]:
        show.words(f"what was made or revoked on the page is not known: {data['page']}\n")
    return show_findings.listed(terminal, data["findings"])
