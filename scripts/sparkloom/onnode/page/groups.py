"""A group that the page stops or starts, as `sparkloom stop` and `start` do; one for another where one fits."""

# What needs the inventory, as another model in a place does, is nothing that a pod may do: acting.py says who may ask.

from __future__ import annotations

import threading
import time
from contextlib import suppress

from sparkloom.onnode import stopping
from sparkloom.onnode.key_table import NotChanged
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now import seen
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.now.groups import Look, Observed, Shown, observe
from sparkloom.onnode.now.labels import LEASES, MARK, RUNS, lease
from sparkloom.onnode.now.picture import picture
from sparkloom.onnode.page.site import Answer, Given, Site

HEARS = "then whoever asks it hears 503 until somebody starts it"
TRIES, EVERY = 100, 3.0  # seconds until pods have ended, as their grace period and a slow node allow


def _found(site: Site, given: Given) -> tuple[Shown, Look, Observed]:
    """As it is now; refused while an operation from a command line works on the site."""
    look, facts = Gatherer(site.reached, site.namespace).observe()
    held = f"metadata.name={lease(str(facts.get('site')))}"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases"
    for one in seen.listed(site.reached, leases, {}, fieldSelector=held):
        notes, holder = one["metadata"].get("annotations") or {}, one["spec"].get("holderIdentity")
        if notes.get(f"{MARK}state") == RUNS:
            raise NotChanged(f"one operation at a time: {notes.get(f'{MARK}command')} of {holder} is under way")
    name = str(given.get("group"))
    found = next((one for one in observe(facts, look) if one.name == name and one.sets), None)
    if found is None:
        raise NotChanged(f"no group is set up here as '{name}'")
    return picture(facts, look), look, found


def _place(shown: Shown, one: Observed) -> str:
    """Where it runs, and what it takes of each Spark there."""
    takes = next(each["takes_gib"] for each in shown["groups"] if each["name"] == one.name)
    each = " of each" if len(one.nodes) > 1 else ""
    return f"{one.name} on {', '.join(one.nodes)}{f' ({takes} GiB{each})' if takes else ''}"


def says_stop(site: Site, given: Given) -> str:
    shown, _, one = _found(site, given)
    if one.stopped:
        raise NotChanged(f"{one.name} is stopped already, by {one.stopped}")
    return f"stop {_place(shown, one)}: {stopping.DRAINS}, {HEARS}"


def does_stop(site: Site, given: Given, person: str) -> Answer:
    *_, one = _found(site, given)
    stopping.stop(site.reached, site.namespace, one.sets, f"{person} on the page")
    return {"said": f"{one.name} is stopped; it is gone once the requests that run have ended."}


def says_start(site: Site, given: Given) -> str:
    shown, look, one = _found(site, given)
    if not stopping.rests(one):
        raise NotChanged(f"{one.name} is not stopped")
    if told := next(stopping.away(look, one), ""):
        raise NotChanged(f"{one.name} cannot start: {told}")
    if one.on_demand:
        return f"start {one.name}: it sleeps until a request wakes it"
    way = stopping.in_the_way(shown, one)
    stops = (f"stop {other}, as {node} does not hold both: {stopping.DRAINS}, {HEARS}" for other, node in way.items())
    return "; then ".join([*stops, f"start {_place(shown, one)}"])


def does_start(site: Site, given: Given, person: str) -> Answer:
    shown, _, one = _found(site, given)
    way = stopping.in_the_way(shown, one)
    for other in way:
        does_stop(site, {"group": other}, person)
    if way:
        threading.Thread(target=_follow, args=(site, one.name, person), daemon=True).start()
        return {"said": f"{one.name} starts once {', '.join(way)} is gone."}
    return _start(site, one)


def _start(site: Site, one: Observed) -> Answer:
    stopping.start(site.reached, site.namespace, one.sets, awake=not one.on_demand)
    return {"said": f"{one.name} is started; above is how far it is."}


def _follow(site: Site, name: str, person: str) -> None:
    """Not while anything of the others runs: it finds the Sparks' memory as any other start does."""
    for _ in range(TRIES):
        time.sleep(EVERY)
        with suppress(Unreached, NotChanged):
            shown, _, one = _found(site, {"group": name})
            if not stopping.in_the_way(shown, one):
                _start(site, one)
                return
    site.note(person, f"{name} was not started: what is in its place did not end")
