"""Which groups the waker is told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkloom.inputs import group_name, serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.serving import Serving
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.needs import Need
from sparkloom.launch import patience
from sparkloom.launch.groups import Running
from sparkloom.onnode import key_table
from sparkloom.onnode.waker.state import Group
from sparkloom.render import keys
from sparkloom.render.manifests import names
from sparkloom.site.client import Client
from sparkloom.site.groups import observed, records


def demanded(cluster: Cluster, told: Mapping[str, Any] | None) -> tuple[list[Group], Mapping[str, Running]]:
    """The groups that are on demand and set up, and all that run; `told`: the inventory's list."""
    listed = serving.from_vars(told, cluster) if told else None
    if not listed or not listed.demanded:  # a list without such groups costs no question
        return [], {}
    runs = observed.running(cluster)
    return groups(listed, cluster, runs), runs


def groups(listed: Serving, cluster: Cluster, runs: Mapping[str, Running]) -> list[Group]:
    """Those of the list that are on demand and are set up; one that is not is started by nobody but serve.yml."""
    found = [(need, runs.get(need.name)) for need in needs.of(listed, cluster) if need.entry.on_demand]
    return [_group(need, one, cluster) for need, one in found if one is not None and need.launch is not None]


def _group(need: Need, runs: Running, cluster: Cluster) -> Group:
    assert need.launch is not None and need.entry.idle_minutes is not None
    label = group_name.label(need.name)
    measured = need.loaded.profile.model.measured.load_seconds
    return Group(
        name=need.name,
        label=names.marked(need.name),
        model=need.alias,
        address=f"{label}.{cluster.namespace}.svc.cluster.local",
        sets=tuple(f"{label}-rank{number}" for number in range(len(runs.nodes))),
        idle_seconds=60.0 * need.entry.idle_minutes,
        turn=need.turn,
        load_seconds=measured,
        limit_seconds=float(patience.wait_seconds(measured)),
    )


def timed(reached: Client, found: list[Group], runs: Mapping[str, Running]) -> list[Group]:
    """With what the cluster knows: by which key the router is known, and how long the last start took that was proved
    here, in place of one elsewhere."""
    kept = {group.name: reached.secret(runs[group.name].engine_key) or {} for group in found}
    own = {name: data.get(keys.BARE_FILE) for name, data in kept.items()}
    found = [replace(group, proof=key_table.digest(key)) if (key := own[group.name]) else group for group in found]
    known = {group.name: records.read(reached, runs[group.name].served) for group in found}
    took = {name: record.get("ready_seconds") for name, record in known.items()}
    return [replace(group, load_seconds=seconds) if (seconds := took[group.name]) else group for group in found]
