"""A site's picture from this machine: the same looks as the page's server has, through the cluster's API."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.now.picture import BLIND, picture
from sparkloom.site import client, facts, patience
from sparkloom.site.client import Client

API_SECONDS, POD_SECONDS = 8.0, 5.0
MOST = 8 << 20  # bytes of an answer


class FromHere:
    """`Reached` of an administrator's machine."""

    def __init__(self, reached: Client) -> None:
        self.reached = reached

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        try:
            answer = self.reached.core.api_client.call_api(
                path, "GET", query_params=list(query.items()), header_params={"Accept": accept},
                auth_settings=["BearerToken"], _preload_content=False, _return_http_data_only=True,
                _request_timeout=API_SECONDS,
            )  # fmt: skip
            return json.loads(answer.data)
        except (ApiException, HTTPError) as error:
            raise Unreached(patience.trouble(error)) from None
        except ValueError:
            raise Unreached("the cluster's API gave no JSON") from None

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        """Through the API server: no route to the pod, and no policy in between."""
        from kubernetes import client as kubernetes
        from kubernetes.client import ApiException

        name = str(pod.metadata.name)
        # a client of its own: while it connects, a forwarded port takes over everything that its client sends
        own = kubernetes.CoreV1Api(kubernetes.ApiClient(self.reached.core.api_client.configuration))
        try:
            connection = Client(own, self.reached.namespace).connect(name, port, POD_SECONDS)
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read(MOST)
            connection.close()
        except (ApiException, OSError, http.client.HTTPException) as error:
            raise Unreached(f"{name} does not answer: {error or type(error).__name__}") from None
        if answer.status != 200:
            raise Unreached(f"{name} answered {answer.status} {answer.reason}")
        return text


def gatherer(inventory: str | Path | None) -> Gatherer:
    """Refused where the inventory or the kubeconfig cannot be read."""
    cluster: Cluster = case.cluster(inventory)
    reached = client.of(cluster)
    reached.core.api_client.configuration.retries = False  # a late picture says how late; the next look asks again
    return Gatherer(FromHere(reached), cluster.namespace, facts.facts(inventory))


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
