"""The router's files: of which groups and keys they are made, how they reach it, and since when it goes by them."""

from __future__ import annotations

import dataclasses
import http.client
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError
from sparkloom.inputs import client_keys, group_name
from sparkloom.inputs.client_keys import Key
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.serving import Serving, of_document
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.needs import Need
from sparkloom.launch import engines, ports
from sparkloom.launch.groups import Running
from sparkloom.launch.resolve import Launch
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import OWNER, Entry
from sparkloom.onnode.prometheus import samples
from sparkloom.render import keys
from sparkloom.render.manifests import router as objects
from sparkloom.render.manifests import waker
from sparkloom.render.manifests.names import CONFIG_HASH
from sparkloom.render.router import Group, Terms, envoy, own_key_file
from sparkloom.site.client import Client

ROUTES = "routes.yaml"
NO_KEY_YET = "there-is-no-key-of-this-engine-yet"
MOST, USUAL = 1024, 64  # requests of one engine at a time
LOOKED = "sparkloom/keys-given"
VERSION = "sparkloom_router_table_info"  # a figure with a label of that name
PATIENCE, NUDGE, LOOK, ANSWERS = 120.0, 5.0, 0.25, 5.0


def models(listed: Serving, cluster: Cluster, runs: Mapping[str, Running]) -> list[Group]:
    """Every group of the list, whether it runs or not, and those that run without being in it."""
    found = [_model(need, need.name, cluster, runs.get(need.name)) for need in needs.of(listed, cluster)]
    taken = {name for one in found for name in one.names}
    for name, running in runs.items():
        if name not in taken and (one := _unlisted(running, cluster)):
            found.append(dataclasses.replace(one, model=name, aliases=()) if taken & set(one.aliases) else one)
            taken |= set(one.names)
    return found


def _model(need: Need, name: str, cluster: Cluster, running: Running | None) -> Group:
    """One on demand is its waker's as soon as the list says so; what runs without being in it never sleeps."""
    launch, label = need.launch, group_name.label(name)
    return Group(
        name,
        f"{label}.{cluster.namespace}.svc.cluster.local",
        launch.port if launch else ports.PROBES,  # of one that no inventory can have: nobody is there
        model=need.alias,
        aliases=(need.alias,) if need.alias != name else (),
        at_once=_at_once(launch) if launch else 1,
        health_port=ports.PROBES,
        health_path="/ready",
        facts=_facts(launch) if launch else {},
        label=label,
        waker=f"{waker.NAME}.{cluster.namespace}.svc.cluster.local:{waker.PORT}" if need.entry.on_demand else "",
        secret=running.engine_key if running else "",
    )


def _unlisted(running: Running, cluster: Cluster) -> Group | None:
    """None of a profile that is not here any more."""
    listed = Document("what runs", {"serve": [running.profile]})
    try:
        return _model(needs.one(of_document(listed, cluster), 0, cluster), running.name, cluster, running)
    except InputError:
        return None


def _at_once(launch: Launch) -> int:
    """As many as the engine takes at a time: the others wait in the router, which counts them."""
    adapter = engines.get(launch.engine)
    asked = adapter.canonical(launch.settings).get(adapter.called.get("requests", ""))
    return min(asked, MOST) if isinstance(asked, int) and asked > 0 else USUAL


def _facts(launch: Launch) -> dict[str, Any]:
    """Of the launch, not of the moment: whether it is up, the router says itself."""
    adapter, model = engines.get(launch.engine), launch.profile.profile.model
    flags = adapter.canonical(launch.settings)
    context = flags.get(adapter.called.get("context", ""))
    can = {
        "tools": bool(flags.get(adapter.called.get("tools", ""))),
        "reasoning": bool(flags.get("reasoning_parser")),
        "images": model.multimodal,
    }
    return {
        "max_model_len": context if isinstance(context, int) and context > 0 else model.context,
        "capabilities": ["text", *(name for name, has in can.items() if has)],
    }


def engine_keys(reached: Client, found: Iterable[Group]) -> dict[str, str]:
    """By the names of their Secrets; of what is not there, nothing."""
    asked = {one.secret for one in found if one.secret}
    kept = {name: reached.secret(name) or {} for name in sorted(asked)}
    return {name: data[keys.BARE_FILE] for name, data in kept.items() if data.get(keys.BARE_FILE)}


def files(found: Iterable[Group], own: Mapping[str, str], known: Sequence[Key], terms: Terms) -> dict[str, str]:
    """What the Secrets hold: Envoy's files, the keys, and each engine's key in a file of its own."""
    kept, listed = dict[str, str](), list[Group]()
    for one in found:
        key = own.get(one.secret, "") or NO_KEY_YET
        file = own_key_file(one.label, key)
        kept[file] = key
        listed.append(dataclasses.replace(one, key_file=terms.file(file)))
    return {**envoy.files(listed, known, terms), **kept}


def table_of(routes: str) -> dict[str, Any]:
    """What router.lua reads of the routes."""
    tables = document.own(routes)["resources"][0]["virtual_hosts"][0]["metadata"]["filter_metadata"]
    return dict(tables[envoy.LUA])


def version_of_files(content: Mapping[str, str]) -> str:
    """As the router tells it: of its routes, and of its keys."""
    return f"{table_of(content[ROUTES])['version']}+{key_table.version(content[key_table.FILE])}"


def keys_given(reached: Client) -> list[Entry]:
    """What the router has of keys, those that the page made among them."""
    return key_table.read((reached.secret(key_table.NAME) or {}).get(key_table.FILE, ""))


@dataclass(frozen=True, slots=True)
class Given:
    """`changed`: the Secret was another; `seconds`: until the router went by it, None where there is none yet."""

    changed: bool
    seconds: float | None


def give(
    reached: Client, content: Mapping[str, str], say: Callable[[str], None], *, dry: bool = False, kind: str = ""
) -> Given:
    """The Secrets as they should be; a router that runs goes by them when this returns. `kind`: the hash of pods that
    stay: one that is made anew may not understand these files."""
    listed = key_table.read(content[key_table.FILE])
    content = {**content, key_table.FILE: key_table.text(key_table.merged(listed, keys_given(reached)))}
    own = {key_table.FILE: content[key_table.FILE]}
    changed = reached.put_secret(key_table.NAME, own, labels=objects.LABELS, dry=dry)
    others = {name: text for name, text in content.items() if name not in own}
    changed |= reached.put_secret(objects.NAME, others, labels=objects.LABELS, dry=dry)
    version = version_of_files(content)
    runs = running(reached, kind)
    if dry or not runs:
        return Given(changed, None)
    if changed:  # limits and clusters are in no version: the kubelet is told to look in any case
        look(reached, runs)
    return Given(changed, effective(reached, version, say, kind))


def push(reached: Client, file: Path, say: Callable[[str], None], revoked: str = "") -> Given | None:
    """keys.yml to a router that has its files, and the site's own key as the last playbook gave it; None where none was
    given any yet. `revoked`: a person of whom the page may have made a key."""
    kept, given = reached.secret(objects.NAME), keys_given(reached)
    if kept is None or ROUTES not in kept or not given:
        return None
    if any(one.by and one.name == revoked for one in given):
        given = key_table.revoked(given, revoked, OWNER)
        reached.put_secret(key_table.NAME, {key_table.FILE: key_table.text(given)}, labels=objects.LABELS)
    listed = [key.entry for key in client_keys.read(file)[1]]
    if all(one.name != OWNER for one in listed):
        listed += [one for one in given if one.name == OWNER]
    return give(reached, {**kept, key_table.FILE: key_table.text(listed)}, say)


def look(reached: Client, pods: Iterable[str]) -> None:
    """Their files are renewed now."""
    for pod in pods:
        reached.nudge(pod, LOOKED)


def running(reached: Client, kind: str = "") -> list[str]:
    """The router's pods that answer or will, by name; one that is going is asked no more."""
    pods = [
        pod
        for pod in reached.pods(objects.SELECTOR)
        if not kind or (pod.metadata.annotations or {}).get(CONFIG_HASH) == kind
    ]
    there = [pod for pod in pods if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp]
    return [str(pod.metadata.name) for pod in there]


def effective(
    reached: Client,
    version: str,
    say: Callable[[str], None],
    kind: str = "",
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Seconds until every pod of the router goes by this version of its tables; the kubelet is told to look."""
    begun, nudged = clock(), float("-inf")
    while late := [pod for pod in running(reached, kind) if version_of(reached, pod) != version]:
        waited = clock() - begun
        if waited > PATIENCE:
            cure = f"its events say why: kubectl describe pod {late[0]}"
            found = f"still goes by other keys after {waited:.0f} s"
            raise InputError.single(late[0], f"{found}; {cure}", rule="key-not-taken")
        if clock() - nudged >= NUDGE:
            if waited >= NUDGE:
                say(f"{late[0]} has not read its files yet ({waited:.0f} s of {PATIENCE:.0f} s)")
            look(reached, late)
            nudged = clock()
        sleep(LOOK)
    return clock() - begun


def version_of(reached: Client, pod: str) -> str:
    return next((one.label("version") for one in samples(metrics(reached, pod), (VERSION,))), "")


def metrics(reached: Client, pod: str) -> str:
    """What a pod of the router has counted, as it writes it for Prometheus; empty where it does not answer."""
    from kubernetes.client import ApiException

    try:
        connection = reached.connect(pod, Terms().metrics_port, ANSWERS)
        connection.request("GET", "/metrics", headers={"Host": objects.NAME})
        answer = connection.getresponse()
        return answer.read().decode(errors="replace") if answer.status == 200 else ""
    except (OSError, http.client.HTTPException, ApiException):
        return ""
