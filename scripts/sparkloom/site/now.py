"""What a site is now, from this machine: the same looks as the page's server has, through the cluster's API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.case import Inventory
from sparkloom.inputs import group_name
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.groups import Running
from sparkloom.onnode import kube
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.now.groups import Look, Observed, observe
from sparkloom.onnode.now.picture import BLIND, picture
from sparkloom.onnode.now.picture import group as drawn
from sparkloom.onnode.rank.plan import STATUS_PATH
from sparkloom.site import client, facts, patience
from sparkloom.site.client import Client
from sparkloom.site.groups import observed
from sparkloom.site.groups.group import RenderedGroup

API_SECONDS, POD_SECONDS = 8.0, 5.0


class FromHere:
    """`Reached` of an administrator's machine."""

    def __init__(self, reached: Client) -> None:
        self.reached = reached

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        try:
            return self.reached.api(path, query, accept, API_SECONDS)
        except (ApiException, HTTPError) as error:
            raise Unreached(patience.trouble(error)) from None
        except ValueError:
            raise Unreached("the cluster's API gave no JSON") from None

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        """Through the API server: no route to the pod, and no policy in between.

        A supervisor listens at its pod's own address only, which no forwarded port reaches: a command in the pod asks.
        """
        from kubernetes.client import ApiException

        name = str(pod.metadata.name)
        if path == STATUS_PATH:
            return self.reached.ask(name, client.SUPERVISOR).encode()
        try:
            connection = self.reached.connect(name, port, POD_SECONDS)
        except (ApiException, OSError) as error:
            raise Unreached(f"{name} does not answer: {error or type(error).__name__}") from None
        return kube.answered(connection, name, "GET", path)


@dataclass(frozen=True)
class Site:
    """One look at a site, held against its inventory. The cluster says what is there, the inventory what should be;
    that the two differ is nobody's error here.
    """

    cluster: Cluster
    reached: Client
    look: Look
    planned: facts.Planned
    runs: Mapping[str, Running]

    @cached_property
    def facts(self) -> dict[str, Any]:
        return self.planned.facts()

    @cached_property
    def groups(self) -> list[Observed]:
        return observe(self.facts, self.look)

    @property
    def single(self) -> Observed | None:
        """The only group of a site with one; a record without pods makes no second one."""
        counted = [one for one in self.groups if one.pods or one.listed]
        return counted[0] if len(counted) == 1 and not (self.planned.listed and self.planned.problem) else None

    @property
    def running(self) -> list[Observed]:
        return [one for one in self.groups if one.pods]

    def one(self, word: str) -> Observed:
        """By its name, by what clients ask for, or by its profile where no other has it."""
        named = [one for one in self.groups if one.name == word]
        meant = named or [one for one in self.groups if one.goes_by(word)]
        if len(meant) == 1:
            return meant[0]
        known = [one.name for one in self.groups]
        if meant:
            found = f"{word} is {len(meant)} groups ({', '.join(one.name for one in meant)}); write one's name"
        elif known:
            found = f"{word}: the site has no such group{did_you_mean(word, known)}"
        else:
            found = f"{word}: the site has no group, and nothing runs there"
        raise InputError.single("group", found, rule="no-such-group")


def read(inventory: Inventory, reached: Client | None = None) -> Site:
    """One look; a cluster that does not answer is refused by the file that names it."""
    cluster = case.cluster(inventory)
    reached = reached or client.of(cluster)
    try:
        look, _ = Gatherer(FromHere(reached), cluster.namespace, {}).observe()
    except Unreached as error:
        message = f"{error}; cluster.kubernetes.kubeconfig names it"
        raise InputError.single(client.kubeconfig(cluster), message, rule="no-cluster") from None
    runs = observed.of(cluster, look)
    return Site(cluster, reached, look, facts.planned(inventory, runs), runs)


def one(reached: Client, group: RenderedGroup, *, on_demand: bool) -> dict[str, Any]:
    """A group as it is to run, beside what is there of it: as a picture has it."""
    site, launch = group.rendered.case.cluster, group.launch
    look, _ = Gatherer(FromHere(reached), site.namespace, {}, only=group.labels).observe()
    label = group_name.label(group.name)
    told = {"name": group.name, "label": label, "profile": group.profile, "idle_minutes": int(on_demand)}
    there = observe({"groups": [told]}, look)[0]
    ranks = [{"rank": rank.index, "node": rank.place.node.name} for rank in launch.ranks]
    return drawn(replace(there, record={"ranks": ranks}), look, site.called)


def gatherer(inventory: str | Path | None) -> Gatherer:
    """Refused where the inventory or the kubeconfig cannot be read."""
    cluster: Cluster = case.cluster(inventory)
    reached = client.of(cluster)
    reached.core.api_client.configuration.retries = False  # a late picture says how late; the next look asks again
    return Gatherer(FromHere(reached), cluster.namespace, facts.planned(inventory).facts())


def looks(inventory: str | Path | None) -> Iterator[dict[str, Any]]:
    """One picture after the other, without end; while the cluster does not answer the last one, with why."""
    gathers = gatherer(inventory)
    last = picture(gathers.facts or {}, BLIND) | {"at": None}
    while True:
        try:
            last = gathers.look()
            yield last
        except Unreached as error:
            yield {**last, "problems": [*last["problems"], str(error)]}
