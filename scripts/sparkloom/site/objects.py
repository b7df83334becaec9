"""Objects applied, and what an apply would change: the API server itself tells, asked to keep nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.onnode.now.labels import PROFILE
from sparkloom.site.client import Client

Object = Mapping[str, Any]
# Of metadata these change by themselves.
MOVING = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
# As the roles apply: other people's changes of our fields are what is looked for.
APPLY = {"fieldManager": "sparkloom", "force": "true"}
DRY = {**APPLY, "dryRun": "All"}
AT_ONCE = 4


class Api:
    """The cluster's objects by kind, asked plainly: Multus' kinds have no client of their own."""

    def __init__(self, reached: Client) -> None:
        self._api = reached.core.api_client
        self._resources = cache(self._list)

    def answer(self) -> None:
        """Raises what keeps it from that."""
        self._ask("GET", "/api/v1/namespaces/default")

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
        there = self._ask("GET", path)
        return _compared(wanted, there, self._ask("PATCH", path, wanted, APPLY))

    def _differs(self, wanted: Object, demanded: Collection[str]) -> dict[str, Any] | None:
        path = self._path(wanted)
        there = self._ask("GET", path) if path else None
        if there is None:
            return _compared(wanted, None, None)
        if wanted["kind"] == "StatefulSet" and wanted["metadata"].get("labels", {}).get(PROFILE) in demanded:
            wanted = {**wanted, "spec": {**wanted["spec"], "replicas": there["spec"]["replicas"]}}
        return _compared(wanted, there, self._ask("PATCH", path, wanted, DRY))

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
        return tuple((self._ask("GET", root) or {}).get("resources", ()))

    def _ask(
        self, method: str, path: str, body: Object | None = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """The answer, or None where there is no such thing."""
        from kubernetes.client import ApiException

        headers = {"Accept": "application/json"}
        headers |= {"Content-Type": "application/apply-patch+yaml"} if body else {}
        words = list((query or {}).items())
        try:
            answer = self._api.call_api(
                path, method, query_params=words, header_params=headers, body=dict(body) if body else None,
                auth_settings=["BearerToken"], _preload_content=False, _return_http_data_only=True,
            )  # fmt: skip
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        told: dict[str, Any] = json.loads(answer.data)
        return told


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
