"""What a client of the endpoint meets, by Python's standard library alone: prints one JSON object.

    python ask.py ADDRESS CA_FILE KEY_FILE COUNT_COMMAND...

COUNT_COMMAND prints the engine's metrics: how many requests run there is asked beside the endpoint.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLOSED = (
    "/health", "/metrics", "/version", "/ping", "/docs", "/v2", "/v1", "/v1x", "/v1/", "/v1/load_lora_adapter",
    "/v1/..%2fhealth", "/v1/%2e%2e/health", "/v1/models/..%2f..%2fhealth", "/v1/models/%2e%2e%2fx",
)  # fmt: skip
LONG = (1 << 20) + 1  # bytes: the first that the site does not take


def main() -> None:
    address, trust, key_file, *count = sys.argv[1:]
    key = Path(key_file).read_text().strip()
    context = ssl.create_default_context(cafile=trust)

    def connect() -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(address, timeout=60, context=context)

    def ask(method: str, path: str, bearer: str = "", body: Any = None, **more: str) -> tuple[int, bytes]:
        connection = connect()
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        connection.request(method, path, body, {**headers, **more}, encode_chunked="Transfer-Encoding" in more)
        response = connection.getresponse()
        return response.status, response.read()

    status, models = ask("GET", "/v1/models", key)
    model = json.loads(models)["data"][0]["id"]
    short = json.dumps({"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}]}).encode()
    found: dict[str, Any] = {
        "models": status,
        "x_api_key": ask("GET", "/v1/models", **{"x-api-key": key})[0],
        "bearer": ask("GET", "/v1/models", Authorization=f"bearer {key}")[0],
        "one_model": ask("GET", f"/v1/models/{model}", key)[0],
        "in_chunks": ask("POST", "/v1/chat/completions", key, iter([short]), **{"Transfer-Encoding": "chunked"})[0],
        "unknown": ask("POST", "/v1/chat/completions", key, '{"model": "nobody", "messages": []}')[0],
        "model": model,
        "without_key": ask("GET", "/v1/models")[0],
        "wrong_key": ask("POST", "/v1/chat/completions", "sk-not-the-key-of-anyone", "{}")[0],
        "closed": {path: ask("GET", path, key)[0] for path in CLOSED},
        "plain": plain(address),
        "too_long": too_long(connect(), key),
        "of_no_length": too_long(connect(), key, chunked=True),
        "too_long_without_key": too_long(connect(), "sk-not-the-key-of-anyone"),
        "stream": stream(connect(), key, model, 60),
    }
    found["left"] = leave(connect(), key, model, count)
    print(json.dumps(found))


def plain(address: str) -> str:
    """Where the same path leads to without TLS."""
    connection = http.client.HTTPConnection(address, 80, timeout=10)
    connection.request("GET", "/v1/models")
    response = connection.getresponse()
    return f"{response.status} {response.headers['Location']}"


def too_long(connection: http.client.HTTPSConnection, key: str, *, chunked: bool = False) -> int | str:
    """Who sends on without reading may find the connection closed."""
    body = iter([b"x" * LONG]) if chunked else b"x" * LONG
    headers = {"Authorization": f"Bearer {key}"}
    try:
        connection.request("POST", "/v1/chat/completions", body, headers, encode_chunked=chunked)
        return connection.getresponse().status
    except OSError:
        return "closed"


def begin(connection: http.client.HTTPSConnection, key: str, model: str, tokens: int) -> http.client.HTTPResponse:
    body = {"model": model, "stream": True, "max_tokens": tokens, "ignore_eos": True}
    body["messages"] = [{"role": "user", "content": "Say something long."}]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    return connection.getresponse()


def stream(connection: http.client.HTTPSConnection, key: str, model: str, tokens: int) -> dict[str, float]:
    """When the pieces of an answer came: together, or one after the other?"""
    response = begin(connection, key, model, tokens)
    times = [time.monotonic() for line in response if line.startswith(b"data: {")]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    return {"pieces": len(times), "seconds": times[-1] - times[0], "longest_pause": max(pauses)}


def running(count: list[str]) -> float:
    text = subprocess.run(count, capture_output=True, text=True, check=True).stdout
    match = re.search(r"^vllm:num_requests_running(?:{[^}]*})? ([\d.]+)", text, re.M)
    return float(match[1]) if match else -1


def leave(connection: http.client.HTTPSConnection, key: str, model: str, count: list[str]) -> dict[str, float]:
    """A client goes in the middle of a long answer: does the engine stop?"""
    response = begin(connection, key, model, 4000)
    for _ in range(10):
        response.readline()
    during = running(count)
    response.close()
    connection.close()
    limit = time.monotonic() + 10
    while (after := running(count)) and time.monotonic() < limit:
        time.sleep(0.5)
    return {"during": during, "after": after}


if __name__ == "__main__":
    main()
