"""Groups that a person stops and starts, seen to the end. What changes the cluster is onnode/stopping.py alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sparkloom.base.errors import InputError
from sparkloom.judge.fleet import steps
from sparkloom.launch import patience
from sparkloom.launch.groups import Placed
from sparkloom.onnode import stopping
from sparkloom.onnode.host_metrics import certificates
from sparkloom.onnode.now import ground, picture
from sparkloom.onnode.now.groups import Observed, label
from sparkloom.onnode.now.labels import CONFIG_HASH, ENGINES, PROFILE
from sparkloom.render.manifests import gateway
from sparkloom.site import client, now
from sparkloom.site.groups import sets, waiting
from sparkloom.site.now import Site
from sparkloom.site.patience import until_gone

Say = Callable[[str], None]
ALL = "all"


def meant(site: Site, word: str | None, verb: str) -> list[Observed]:
    """Those that are set up: the one that goes by the word, all of them, or the only one."""
    there = [one for one in site.groups if one.sets]
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
        by = client.asked(partial(stopping.stop, site.reached, site.reached.namespace, one.sets, who), site.cluster)
        say(f"{one.name} is stopped by {by}; {stopping.DRAINS}")
    labels = {label(one) for group in chosen for one in group.sets}
    until_gone("pods", lambda: sets.left(site.reached, (), labels), say, sets.GONE)


def start(site: Site, chosen: Sequence[Observed], say: Say) -> list[str]:
    """What is missing of each that does not serve then. Those on one Spark load one after the other."""
    rest = {one.name: one for one in chosen if stopping.rests(one)}
    missing = []
    for one in chosen:
        if one.name in rest:
            continue
        if cause := _cause(site, one):
            missing.append(f"{one.name} is not stopped, and does not serve:{cause}")
        else:
            say(f"{one.name} is not stopped; `sparkloom status {one.name}` says what it is at")
    if away := [f"{one.name} was not started: {told}" for one in rest.values() for told in _hindered(site, one)]:
        return missing + away
    for problem in ground.ill(site.look, site.cluster.called):
        say(problem)
    for wave in steps.order([Placed(name, one.profile, tuple(one.nodes)) for name, one in rest.items()], {}):
        begun = [rest[name] for name in wave.start]
        for one in begun:
            begin = partial(stopping.start, site.reached, site.reached.namespace, one.sets, awake=not one.on_demand)
            client.asked(begin, site.cluster)
        missing += [text for one in begun for text in _waited(site, one, say)]
    return [*missing, *_ended(site)]


def _waited(site: Site, one: Observed, say: Say) -> Iterator[str]:
    if one.on_demand:
        say(f"{one.name} is on demand: the next request wakes it")
        return
    labels, digest = {**ENGINES, PROFILE: label(one.sets[0])}, one.sets[0].metadata.annotations[CONFIG_HASH]
    limit = patience.wait_seconds(one.served.get("ready_seconds"))
    outcome = waiting.wait(site.reached, waiting.ServedGroup(labels, digest, len(one.sets), limit), say)
    if outcome.ready:
        say(f"{one.name} serves: {outcome.message}")
        return
    again = now.read(site.cluster, site.reached)
    yield f"{one.name} does not serve:{_cause(again, again.one(one.name)) or f' {outcome.message}'}"


def _cause(site: Site, one: Observed) -> str:
    """On a line of its own; empty for one that serves."""
    told = picture.group(one, site.look, site.cluster.called)
    return f"\n  {told['cause']}" if told["cause"] and not told["serving"] else ""


def _hindered(site: Site, one: Observed) -> Iterator[str]:
    yield from stopping.away(site.look, one)
    for other, node in stopping.in_the_way(picture.picture(site.facts, site.look), one).items():
        yield f"{node} does not hold it beside {other}; `sparkloom stop {other}` first"


def _ended(site: Site) -> list[str]:
    """The endpoint's certificate, where its time is over."""
    day = certificates.ended((site.reached.secret(gateway.TLS_SECRET) or {}).get("tls.crt", ""))
    return [f"the endpoint's certificate ended on {day}; playbooks/gateway.yml renews it"] if day else []
