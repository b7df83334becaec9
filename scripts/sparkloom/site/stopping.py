"""Groups that a person stops and starts, seen to the end. What changes the cluster is onnode/stopping.py alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cryptography import x509

from sparkloom.base.errors import InputError
from sparkloom.judge.fleet import steps
from sparkloom.launch import patience
from sparkloom.launch.groups import Placed
from sparkloom.onnode import stopping
from sparkloom.onnode.now import picture, pods
from sparkloom.onnode.now.groups import Observed, replicas
from sparkloom.onnode.now.labels import CONFIG_HASH, ENGINES, HOSTNAME, PROFILE
from sparkloom.render.manifests import gateway
from sparkloom.site import client, now
from sparkloom.site.groups import sets, waiting
from sparkloom.site.now import Site
from sparkloom.site.patience import until_gone

Say = Callable[[str], None]
ALL = "all"


def meant(site: Site, word: str | None, verb: str) -> list[Observed]:
    """Those that are set up: the one that goes by the word, all of them, or the only one."""
    there = [one for one in site.groups if _sets(site, one)]
    chosen = [site.one(word)] if word and word != ALL else there
    names = ", ".join(one.name for one in there)
    if lost := next((f"{one.name} is not" for one in chosen if one not in there), "" if there else "nothing is"):
        found = f"{lost} set up here; playbooks/serve.yml starts what the inventory lists"
    elif len(chosen) > 1 and word != ALL:
        found = f"{len(there)} groups are set up here: {names}; name one, as `sparkloom {verb} {there[0].name}`, or all"
    else:
        return chosen
    raise InputError.single(site.cluster.name, found, rule="which-group")


def stop(site: Site, chosen: Sequence[Observed], who: str, say: Say) -> None:
    """Until nothing of them runs any more; requests that run are given time by their supervisors."""
    for one in chosen:
        if one.stopped:
            say(f"{one.name} is stopped already, by {one.stopped}")
            continue
        by = client.asked(partial(stopping.stop, *_where(site, one), who), site.cluster)
        say(f"{one.name} is stopped by {by}; requests that run have 40 s to end")
    labels = {_label(one) for group in chosen for one in _sets(site, group)}
    until_gone("pods", lambda: sets.left(site.reached, (), labels), say, sets.GONE)


def start(site: Site, chosen: Sequence[Observed], say: Say) -> list[str]:
    """What is missing of each that does not serve then. Those on one Spark load one after the other."""
    rest = {one.name: one for one in chosen if not one.asleep and not all(map(replicas, _sets(site, one)))}
    for name in (one.name for one in chosen if one.name not in rest):
        say(f"{name} is not stopped; `sparkloom status {name}` says what it is at")
    if missing := [text for one in rest.values() for text in _away(site, one)]:
        return missing
    for wave in steps.order([Placed(name, one.profile, tuple(one.nodes)) for name, one in rest.items()], {}):
        begun = [rest[name] for name in wave.start]
        for one in begun:
            client.asked(partial(stopping.start, *_where(site, one), awake=not one.on_demand), site.cluster)
        missing += [text for one in begun for text in _waited(site, one, say)]
    return [*missing, *_ended(site)]


def _waited(site: Site, one: Observed, say: Say) -> Iterator[str]:
    if one.on_demand:
        say(f"{one.name} is on demand: the next request wakes it")
        return
    mine = _sets(site, one)
    labels, digest = {**ENGINES, PROFILE: _label(mine[0])}, mine[0].metadata.annotations[CONFIG_HASH]
    limit = patience.wait_seconds(one.served.get("ready_seconds"))
    outcome = waiting.wait(site.reached, waiting.ServedGroup(labels, digest, len(mine), limit), say)
    if outcome.ready:
        say(f"{one.name} serves: {outcome.message}")
        return
    again = now.read(site.cluster, site.reached)
    cause = picture.group(again.one(one.name), again.look, {})["cause"]
    yield f"{one.name} does not serve: {outcome.message}" + (f"\n  {cause}" if cause else "")


def _away(site: Site, one: Observed) -> Iterator[str]:
    """Its nodes that are not there: nothing is started without them."""
    for each in _sets(site, one):
        place = str((each.spec.template.spec.node_selector or {}).get(HOSTNAME))
        if told := pods.away(place, site.look.nodes):
            yield f"{one.name} was not started: {told}"


def _ended(site: Site) -> list[str]:
    """The endpoint's certificate, where its time is over."""
    kept = site.reached.secret(gateway.TLS_SECRET)
    until = x509.load_pem_x509_certificate(kept["tls.crt"].encode()).not_valid_after_utc if kept else None
    if until is None or until > datetime.now(UTC):
        return []
    return [f"the endpoint's certificate ended on {until:%Y-%m-%d}; playbooks/gateway.yml renews it"]


def _sets(site: Site, one: Observed) -> list[Any]:
    return [each for each in site.look.sets if _label(each) in (one.name, one.label)]


def _where(site: Site, one: Observed) -> tuple[client.Client, str, list[str]]:
    return site.reached, site.reached.namespace, [str(each.metadata.name) for each in _sets(site, one)]


def _label(one: Any) -> str:
    return str(one.metadata.labels.get(PROFILE))
