"""What a model that speaks is asked through the endpoint, as any client asks: with TLS, a key and plain JSON.

Its words can be judged, where random weights showed only the shape of an answer.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse, HTTPSConnection
from typing import Any

from testbed.base import names
from testbed.beds.rack import cluster

CAPITAL = "Name the capital of France."
# Each with a word that a right answer has: of 135 million parameters in 4 bits these are known to it.
QUESTIONS = {CAPITAL: "Paris", "How many days are in a week?": "7", "What is the opposite of hot?": "cold"}


def request(path: str, body: dict[str, Any], patience: float = 180) -> tuple[HTTPSConnection, HTTPResponse]:
    gateway = names.STATE / "gateway"
    key = (gateway / "api-key").read_text().split()[0]
    where = cluster.nodes()[names.NODES["spark1"]]["ip"]
    trust = ssl.create_default_context(cafile=str(gateway / "ca.pem"))
    connection = HTTPSConnection(where, context=trust, timeout=patience)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return connection, connection.getresponse()


def asked(path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    connection, response = request(path, body)
    with closing(connection):
        return response.status, json.loads(response.read())


def chat(question: str, **more: Any) -> dict[str, Any]:
    """The greedy answer to one question, whole."""
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 64, **more}
    status, told = asked("/v1/chat/completions", **body)
    assert status == 200, told
    return told


def said(told: dict[str, Any]) -> str:
    return str(told["choices"][0]["message"]["content"])


def events(question: str, **more: Any) -> Iterator[dict[str, Any]]:
    """Those of a stream up to [DONE], which must come."""
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 64, "stream": True}
    connection, response = request("/v1/chat/completions", {**body, **more})
    with closing(connection):
        assert response.status == 200, response.read()
        for line in response:
            if line.startswith(b"data: [DONE]"):
                return
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
    raise AssertionError("the stream ended without [DONE]")
