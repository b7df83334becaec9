"""What a pod asks over HTTP: the cluster's API by its own token; other pods, Services and its engine by address."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

GIVEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # by the kubelet, which renews the token
API_SECONDS, POD_SECONDS = 4.0, 2.0
MOST = 8 << 20  # bytes of an answer
JSON = "application/json"
MERGE = "application/merge-patch+json"


class Unreached(Exception):
    """The cluster, or a pod of it, did not answer: one line."""


class Refused(Unreached):
    """It answered, and not what was asked for."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class InCluster:
    """The cluster's API and its pods; a new connection for each question, so that nothing waits for a stale one."""

    def __init__(self, given: Path = GIVEN) -> None:
        self.given = given
        self.host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        self.port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        return self._asked("GET", f"{path}?{urlencode(query)}" if query else path, {"Accept": accept})

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any:
        """PUT, PATCH: the object as it is then."""
        return self._asked(method, path, {"Accept": JSON, "Content-Type": kind}, json.dumps(content))

    def text(self, path: str, query: Mapping[str, str]) -> str:
        return self._answered("GET", f"{path}?{urlencode(query)}", {"Accept": "*/*"}).decode(errors="replace")

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        address = str(pod.status.pod_ip or "")
        if not address:
            raise Unreached(f"{pod.metadata.name} has no address")
        return asked(address, port, path, pod.metadata.name)

    def _asked(self, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> Any:
        try:
            return json.loads(self._answered(method, path, headers, body))
        except ValueError:
            raise Unreached("the cluster's API gave no JSON") from None

    def _answered(self, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> bytes:
        try:
            context = ssl.create_default_context(cafile=str(self.given / "ca.crt"))
            token = (self.given / "token").read_text().strip()
        except (OSError, ssl.SSLError) as error:
            raise Unreached(f"this pod has no access to the cluster's API: {error}") from None
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=API_SECONDS, context=context)
        told = {**headers, "Authorization": f"Bearer {token}"}
        return answered(connection, "the cluster's API", method, path, body, told)


def asked(
    address: str, port: int, path: str, who: str, seconds: float = POD_SECONDS, headers: Mapping[str, str] | None = None
) -> bytes:
    """What a pod, a Service or an engine answers to a GET."""
    connection = http.client.HTTPConnection(address, port, timeout=seconds)
    return answered(connection, who, "GET", path, None, dict(headers or {}))


def answered(connection: http.client.HTTPConnection, who: str, *request: Any) -> bytes:
    """A 200 and all of its body, or why not; the connection ends with it."""
    try:
        connection.request(*request)
        answer = connection.getresponse()
        text = answer.read(MOST + 1)
    except (OSError, http.client.HTTPException) as error:
        raise Unreached(f"{who} does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise Refused(answer.status, f"{who} answered {answer.status} {answer.reason}")
    if len(text) > MOST:
        raise Unreached(f"{who} answered with more than {MOST >> 20} MiB")
    return text
