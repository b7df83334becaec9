"""All that the page does for who may administer: a look answers at once, an action says first what it will do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from sparkloom.base.visible import visible
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import Entry, NotChanged
from sparkloom.onnode.kube import JSON, Unreached
from sparkloom.onnode.loglines import ANSI
from sparkloom.onnode.now import seen, usage
from sparkloom.onnode.now.gather import ROUTER_PORT
from sparkloom.onnode.now.labels import ENGINES, ROUTER
from sparkloom.onnode.page import groups
from sparkloom.onnode.page.site import JOURNAL, Answer, Given, Site, journalled

DAY = 86400
LOG_LINES, USAGE_DAYS, JOURNAL_LINES, LONGEST_KEY_DAYS = 200, 30, 50, 3650


class Action(NamedTuple):
    """`says`: what will happen, as the journal has it too; `NotChanged` with why it will not. `does`: what came of it,
    with `said` for the person who asked. `of_group`: offered for each group, which is `given["group"]`."""

    says: Callable[[Site, Given], str]
    does: Callable[[Site, Given, str], Answer]
    of_group: bool = False


# --- looks --------------------------------------------------------------------------------------------------------


def log(site: Site, given: Given) -> Answer:
    """The last lines of a rank, without an engine's colours and what else a terminal would obey."""
    pods = {str(pod.metadata.name) for pod in seen.pods(site.reached, site.namespace, ENGINES)}
    if (pod := str(given.get("pod"))) not in pods:
        raise NotChanged(f"no rank's pod is called '{pod}'")
    text = ANSI.sub("", site.log(pod, LOG_LINES))
    return {"lines": [visible(line) for line in text.split("\n") if line.strip()]}


def used(site: Site, given: Given) -> Answer:
    """By person and model: what was noted, and what the router counted since."""
    maps = seen.listed(site.reached, f"{site.core}/configmaps", {}, JSON, fieldSelector=f"metadata.name={usage.NAME}")
    kept = "".join((one.get("data") or {}).get(usage.KEY, "") for one in maps)
    pages = {usage.container(pod): _counted(site, pod) for pod in seen.pods(site.reached, site.namespace, ROUTER)}
    first = _day(site.clock() - (USAGE_DAYS - 1) * DAY)
    noted = usage.noted(kept, {who: page for who, page in pages.items() if who and page}, _day(site.clock()))
    return {"since": first, "rows": usage.by_person(usage.from_day(noted, first))}


def _counted(site: Site, pod: Any) -> str:
    try:
        return site.reached.ask(pod, ROUTER_PORT, "/metrics").decode(errors="replace")
    except Unreached:
        return ""


def keys(site: Site, given: Given) -> Answer:
    """Without their hashes."""
    listed = sorted(site.read_keys(), key=lambda one: one.name)
    rows = [{**one._asdict(), "hash": None, "ended": not one.opens(site.clock())} for one in listed]
    journal = journalled(site.reached.api(f"{site.core}/configmaps/{JOURNAL}", {}, JSON))
    return {"keys": rows, "journal": journal[-JOURNAL_LINES:]}


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


# --- keys ---------------------------------------------------------------------------------------------------------


def _made(site: Site, given: Given, key: str = "", person: str = "") -> Entry:
    """As it is asked for; limits a minute are for `sparkloom keys add`."""
    name, models, days = given.get("name"), given.get("models") or [], given.get("days") or 0
    if not isinstance(name, str) or not re.fullmatch(key_table.KEY_NAME, name):
        raise NotChanged("a name has small letters, digits and ._@-, as alice-laptop")
    if not isinstance(models, list) or not all(re.fullmatch(key_table.MODEL_NAME, str(one)) for one in models):
        raise NotChanged("models are names of models, or none of them for all")
    if not isinstance(days, int) or not 0 <= days <= LONGEST_KEY_DAYS:
        raise NotChanged(f"days: expected a number up to {LONGEST_KEY_DAYS}, or none for a key without an end")
    ends = (int(site.clock()) // DAY + days + 1) * DAY if days else 0
    admin = int(given.get("admin") is True)
    return Entry(key_table.digest(key), name, ",".join(map(str, models)), ends=ends, admin=admin, by=person)


def says_add(site: Site, given: Given) -> str:
    made = key_table.added(site.read_keys(), _made(site, given))[-1]
    models = made.models.replace(",", ", ") or "all models"
    ends = f"until {_day(made.ends - DAY)}" if made.ends else "without an end"
    return f"make a key of {made.name} for {models}, {ends}{'; it may administer this site' if made.admin else ''}"


def does_add(site: Site, given: Given, person: str) -> Answer:
    made = _made(site, given, key := key_table.generate(), person)
    site.change_keys(lambda kept: key_table.added(kept, made))
    return {"said": f"This is the key of {made.name}. It is shown this once: the site has its hash.", "key": key}


def says_revoke(site: Site, given: Given) -> str:
    left = key_table.revoked(site.read_keys(), name := str(given.get("name")), "you")
    marked = any(one.name == name for one in left)
    return f"revoke the key of {name}{'; keys.yml has it, marked, until `sparkloom keys revoke`' if marked else ''}"


def does_revoke(site: Site, given: Given, person: str) -> Answer:
    site.change_keys(lambda kept: key_table.revoked(kept, str(given["name"]), person))
    return {"said": f"The key of {given['name']} is revoked. The router goes by that within two minutes."}


LOOKS: dict[str, Callable[[Site, Given], Answer]] = {"log": log, "usage": used, "keys": keys}
# Here is the place for one more. Who may administer may do all of them: acting.py asks for that right, nobody else.
ACTIONS: dict[str, Action] = {
    "key-add": Action(says_add, does_add),
    "key-revoke": Action(says_revoke, does_revoke),
    "stop": Action(groups.says_stop, groups.does_stop, of_group=True),
    "start": Action(groups.says_start, groups.does_start, of_group=True),
}
