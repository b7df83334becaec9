"""The cluster from inside a pod: the API by the pod's own token, other pods by their addresses."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sparkloom.onnode.now.gather import Unreached

GIVEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # by the kubelet, which renews the token
API_SECONDS, POD_SECONDS = 4.0, 2.0
MOST = 8 << 20  # bytes of an answer


class InCluster:
    """`Reached` of a pod; a new connection for each question, so that nothing waits for one that went stale."""

    def __init__(self, given: Path = GIVEN) -> None:
        self.given = given
        self.host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        self.port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        try:
            context = ssl.create_default_context(cafile=str(self.given / "ca.crt"))
            headers = {"Authorization": f"Bearer {(self.given / 'token').read_text().strip()}", "Accept": accept}
        except (OSError, ssl.SSLError) as error:
            raise Unreached(f"this pod has no access to the cluster's API: {error}") from None
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=API_SECONDS, context=context)
        text = _asked(connection, f"{path}?{urlencode(query)}" if query else path, headers, "the cluster's API")
        try:
            return json.loads(text)
        except ValueError:
            raise Unreached("the cluster's API gave no JSON") from None

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        address = str(pod.status.pod_ip or "")
        if not address:
            raise Unreached(f"{pod.metadata.name} has no address")
        return _asked(http.client.HTTPConnection(address, port, timeout=POD_SECONDS), path, {}, pod.metadata.name)


def _asked(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], who: str) -> bytes:
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read(MOST)
    except (OSError, http.client.HTTPException) as error:
        raise Unreached(f"{who} does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise Unreached(f"{who} answered {answer.status} {answer.reason}")
    return text
