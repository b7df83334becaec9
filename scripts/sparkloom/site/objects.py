"""Objects applied, and what an apply would change: the API server itself tells, asked to keep nothing.

And what is taken away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.onnode.kube import JSON
from sparkloom.onnode.now.labels import PART_OF, PROFILE
from sparkloom.site.client import Client, or_none, selector
from sparkloom.site.patience import until_gone

Object = Mapping[str, Any]
Kind = tuple[str, str]  # its apiVersion and its name
# Of metadata these change by themselves.
MOVING = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
# As the roles apply: other people's changes of our fields are what is looked for.
APPLY = "fieldManager=sparkloom&force=true"
DRY = f"{APPLY}&dryRun=All"
WHOLE = "application/apply-patch+yaml"
AT_ONCE = 4
OURS = selector(PART_OF)
TABLE: dict[str, list[str]] = document.own(Path(__file__).with_name("kinds.yml").read_text())
GONE = {of: [(words.split()[0], words.split()[1]) for words in kinds] for of, kinds in TABLE.items()}  # in that order


class Api:
    """The cluster's objects by kind, asked plainly: Multus' kinds have no client of their own."""

    def __init__(self, reached: Client) -> None:
        self._reached = reached
        self._resources = cache(self._list)

    def differing(self, objects: Sequence[Object], demanded: Collection[str] = ()) -> list[dict[str, Any]]:
        """Kind, name and what differs of each that is not as applied; no `diff` of one that is not there.

        `demanded`: labels of groups that are on demand, of which nobody but their waker says how many pods there are.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [found for found in pool.map(lambda one: self._differs(one, demanded), objects) if found]

    def apply(self, objects: Sequence[Object]) -> list[dict[str, Any]]:
        """In that order; as `differing` tells it, what has changed."""
        return [found for wanted in objects if (found := self._applied(wanted))]

    def _applied(self, wanted: Object) -> dict[str, Any] | None:
        if not (path := self._path(wanted)):
            message = f"knows no {wanted['kind']} of {wanted['apiVersion']}, which is to be applied"
            raise InputError.single("the cluster", message, rule="unknown-kind")
        there = self._there(path)
        return _compared(wanted, there, self._patched(path, wanted, APPLY))

    def _differs(self, wanted: Object, demanded: Collection[str]) -> dict[str, Any] | None:
        path = self._path(wanted)
        there = self._there(path) if path else None
        if there is None:
            return _compared(wanted, None, None)
        if wanted["kind"] == "StatefulSet" and wanted["metadata"].get("labels", {}).get(PROFILE) in demanded:
            wanted = {**wanted, "spec": {**wanted["spec"], "replicas": there["spec"]["replicas"]}}
        return _compared(wanted, there, self._patched(path, wanted, DRY))

    def _path(self, wanted: Object) -> str:
        """Nothing where the cluster does not know the kind."""
        version = str(wanted["apiVersion"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        known = {entry["kind"]: entry for entry in self._resources(root) if "/" not in entry["name"]}
        if not (kind := known.get(wanted["kind"])):
            return ""
        metadata = wanted["metadata"]
        inside = f"/namespaces/{metadata.get('namespace', 'default')}" if kind["namespaced"] else ""
        return f"{root}{inside}/{kind['name']}/{metadata['name']}"

    def _list(self, root: str) -> tuple[dict[str, Any], ...]:
        return tuple((self._there(root) or {}).get("resources", ()))

    def _there(self, path: str) -> Any:
        """None where there is no such thing."""
        return or_none(lambda: self._reached.api(path, {}, JSON))

    def _patched(self, path: str, wanted: Object, how: str) -> Any:
        """As it is then; None where its namespace is not there."""
        return or_none(lambda: self._reached.change("PATCH", f"{path}?{how}", dict(wanted), WHOLE))


def _compared(wanted: Object, there: Object | None, applied: Object | None) -> dict[str, Any] | None:
    """None where nothing differs; without a `diff` where it was not there."""
    named = {"kind": wanted["kind"], "name": wanted["metadata"]["name"]}
    if there is None:
        return {**named, "diff": {}}
    before, after = _settled(there), _settled(applied or {})
    return None if before == after else {**named, "diff": {"before": before, "after": after}}


def _settled(known: Object) -> dict[str, Any]:
    """Without what changes by itself."""
    metadata = {key: value for key, value in known.get("metadata", {}).items() if key not in MOVING}
    return {**{key: value for key, value in known.items() if key != "status"}, "metadata": metadata}


@dataclass(slots=True)
class Taker:
    """Takes objects away, or says with `dry` what would go; `client` is Kubernetes' dynamic one, of any kind."""

    client: Any
    namespace: str
    dry: bool
    say: Callable[[str], object]
    patience: float = 300.0
    gone: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, reached: Client, *, dry: bool = False, say: Callable[[str], object] = print) -> Taker:
        return cls(DynamicClient(reached.core.api_client), reached.namespace, dry, say)

    def kind(self, kind: Kind) -> Any:
        """The interface to a kind, or None where the cluster does not know it."""
        try:
            return self.client.resources.get(api_version=kind[0], kind=kind[1])
        except ResourceNotFoundError:
            return None

    def found(self, kind: Kind, *, namespace: str | None = None, labels: str = OURS) -> list[Any]:
        """Ours, unless other labels are given; all with none."""
        resource = self.kind(kind)
        if resource is None:
            return []
        where = {"namespace": namespace} if namespace else {}
        try:
            return list(resource.get(**where, **({"label_selector": labels} if labels else {})).items)
        except NotFoundError:  # the client keeps what kinds there were; this one has gone since
            return []

    def delete(self, kind: Kind, objects: list[Any]) -> None:
        for one in objects:
            self.remove(kind, one.metadata.name, one.metadata.namespace)

    def remove(self, kind: Kind, name: str, namespace: str | None) -> None:
        """In the foreground: an object is gone when everything that it owns is."""
        self.gone.append(f"{kind[1]} {name}")
        if not self.dry and (resource := self.kind(kind)):
            where = {"namespace": namespace} if namespace else {}
            with contextlib.suppress(NotFoundError):
                resource.delete(name=name, body={"propagationPolicy": "Foreground"}, **where)

    def wait(self, what: str, left: Callable[[], list[str]]) -> None:
        if not self.dry:
            until_gone(what, left, self.say, self.patience)


def left_over(reached: Client, kinds: Iterable[Kind], labels: Mapping[str, str], *, dry: bool) -> list[str]:
    """Kind and name of what a site that goes on needs no more, taken away."""
    taker = Taker.of(reached, dry=dry)
    for kind in kinds:
        taker.delete(kind, taker.found(kind, namespace=reached.namespace, labels=selector(labels)))
    return taker.gone
