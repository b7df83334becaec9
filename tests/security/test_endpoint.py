"""The endpoint, attacked: the real Traefik with the objects that a site applies, and the real router behind it.

Seen with the route of before (commit 4b940d3, `PathPrefix(/v1)` alone): 18 of the closed spellings below, PUT, DELETE
and OPTIONS, and 40 MB without a key reached the engine. The engine here is a recorder: what it has not heard, no
engine hears.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render.manifests import gateway
from sparkloom.render.router import Group, Terms
from testbed.make import traefik
from testbed.standins.pacing.process import free_ports
from tests.render.router.running import Router
from tests.render.router.waker import Probe

pytestmark = pytest.mark.skipif(
    not traefik.archive().exists(), reason="no Traefik is built here: `python -m testbed rack build` makes one"
)
KEY, OWN = "sk-the-key-of-this-test", "sk-the-engine-s-own-key"
MODEL = "nvidia/Some-Model_1.0"
PATHS = ("/v1/models", "/v1/models/*", "/v1/chat/completions")
CHAT = "/v1/chat/completions"


class Engine(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recorder)
        self.heard: list[str] = []
        self.brought: list[dict[str, str]] = []


class Recorder(BaseHTTPRequestHandler):
    server: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Kept in `heard`."""

    def do_GET(self) -> None:
        self.server.heard.append(f"{self.command} {self.path}")
        self.server.brought.append(dict(self.headers.items()))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET


def program(folder: Path) -> Path:
    """Traefik out of the image that the rack runs."""
    with tarfile.open(traefik.archive()) as image:
        for entry in image.getmembers():
            held = image.extractfile(entry)
            if held is None or not tarfile.is_tarfile(layer := io.BytesIO(held.read())):
                continue
            with tarfile.open(fileobj=layer) as files:
                files.extract("traefik", folder, filter="data")
    return folder / "traefik"


def routed(terms: Terms) -> dict[str, Any]:
    """The objects as Traefik's file provider reads them: the same rules and orders; the router is on loopback."""
    routers, middlewares = {}, {}
    for item in gateway.gateway("sparkloom", terms):
        name, spec = item["metadata"]["name"], item["spec"]
        if item["kind"] == "Middleware":
            middlewares[name] = spec
        if item["kind"] == "IngressRoute":
            for number, rule in enumerate(spec["routes"]):
                (service,) = rule["services"]
                routers[f"{name}-{number}"] = {
                    "entryPoints": spec["entryPoints"],
                    "rule": rule["match"],
                    "priority": rule["priority"],
                    "middlewares": [entry["name"] for entry in rule["middlewares"]],
                    "service": str(service["name"]),
                }
    services = {"router": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{terms.port}"}]}}}
    return {"http": {"routers": routers, "middlewares": middlewares, "services": services}}


class Rig:
    def __init__(self, engine: Engine, plain: int, port: int) -> None:
        self.engine, self.plain, self.port = engine, plain, port

    def ask(self, method: str, path: str, key: str = KEY, body: bytes | None = None, **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {key}", **headers})
            return connection.getresponse().status
        finally:
            connection.close()


def question(length: int = 0) -> bytes:
    """Of so many bytes at least."""
    told = {"model": MODEL, "messages": [{"role": "user", "content": ""}]}
    told["messages"][0]["content"] = "x" * (length - len(json.dumps(told)))  # type: ignore[index]
    return json.dumps(told).encode()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "own").write_text(OWN)
    plain, port = free_ports(2)
    engine, probe = Engine(), Probe()
    threading.Thread(target=engine.serve_forever, daemon=True).start()
    group = Group(MODEL, "127.0.0.1", engine.server_address[1], str(folder / "own"), aliases=("m",), label="m",
                  health_port=probe.port, health_path="/ready")  # fmt: skip
    router = Router(folder, [group], [Key(name="owner", hash=hashed(KEY))], [], megabytes=1, paths=PATHS, timeout=30)
    (folder / "routes.yml").write_text(yaml.safe_dump(routed(router.terms)))
    words = [
        program(folder),
        f"--entryPoints.{gateway.PLAIN}.address=127.0.0.1:{plain}",
        f"--entryPoints.{gateway.ENCRYPTED}.address=127.0.0.1:{port}",
        f"--providers.file.filename={folder / 'routes.yml'}",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
    ]
    log = (folder / "traefik.log").open("w")
    process = subprocess.Popen(words, stdout=log, stderr=log)
    rig = Rig(engine, plain, port)
    try:
        _until_it_answers(rig, folder / "traefik.log")
        yield rig
    finally:
        process.terminate()
        process.wait(10)
        router.close()
        engine.shutdown()
        probe.close()


def _until_it_answers(rig: Rig, log: Path) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            if rig.ask("POST", CHAT, body=question()) == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture(autouse=True)
def unheard(rig: Rig) -> None:
    rig.engine.heard.clear()
    rig.engine.brought.clear()


def test_what_is_granted_is_served(rig: Rig) -> None:
    for path in ("/v1/models", f"/v1/models/{MODEL}", f"/v1/models/{MODEL.replace('/', '%2F')}", "/v1/models/m?x=1"):
        assert (path, rig.ask("GET", path)) == (path, 200)
    assert rig.ask("POST", CHAT, body=question()) == 200
    assert rig.engine.heard == [f"POST {CHAT}"]


CLOSED = (
    "/v1", "/v1/", "/v1x", "/v1x/models", "/health", "/metrics", "/v1/load_lora_adapter", "/v1/..%2fhealth",
    "/v1/../health", "/v1/%2e%2e/health", "/v1/%2e%2e%2fhealth", "/v1/models/..%2f..%2fhealth",
    "/v1/models/../../health", "/v1/models/%2e%2e%2f%2e%2e%2fhealth", "/v1/models/a/../../../health",
    "/v1/models/a%2f..%2f..%2fx", "/v1/models/..", "/v1/models/a/b/c", "/v1/models/a%00", "/v1/models;/health",
    "/v1/models/", "/V1/models", "/v1/models/a%5cb", "http://127.0.0.1/health", "//health", "/.well-known/x",
    "/v1/chat/completions/render", "/v1/chat%2fcompletions",
)  # fmt: skip


@pytest.mark.parametrize("path", CLOSED)
def test_every_other_path_and_spelling_is_closed(rig: Rig, path: str) -> None:
    assert rig.ask("GET", path) == 404
    assert rig.engine.heard == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECTX"])
def test_other_methods_are_closed(rig: Rig, method: str) -> None:
    assert rig.ask(method, CHAT) == 404
    assert rig.engine.heard == []


@pytest.mark.parametrize("key", ["", "wrong", KEY[:-1], f"{KEY}x", f"{KEY} {KEY}", OWN])
def test_no_engine_hears_a_request_without_the_key(rig: Rig, key: str) -> None:
    assert rig.ask("POST", CHAT, key, question()) == 401
    assert rig.engine.heard == []


def test_the_engine_hears_its_own_key_and_never_a_client_s(rig: Rig) -> None:
    assert rig.ask("POST", CHAT, body=question()) == 200
    (brought,) = rig.engine.brought
    assert {name.lower(): value for name, value in brought.items()}["authorization"] == f"Bearer {OWN}"
    assert KEY not in str(brought)


@pytest.mark.parametrize(
    "name, value", [("Authorization", f"bearer {KEY}"), ("Authorization", f"BEARER  {KEY}"), ("x-api-key", KEY)]
)
def test_a_key_is_taken_as_clients_bring_it(rig: Rig, name: str, value: str) -> None:
    """A scheme is in any case (RFC 9110, 11.1), and Anthropic's clients have a header of their own."""
    assert rig.ask("POST", CHAT, "", question(), **{name: value}) == 200
    (brought,) = rig.engine.brought
    assert KEY not in str(brought)


@pytest.mark.parametrize("length", [2, 999, 100_000])
def test_a_question_that_brings_a_body_goes_no_further(rig: Rig, length: int) -> None:
    """Whether it tells its length or not: a GET's was not looked at."""
    assert rig.ask("GET", "/v1/models", body=b"x" * length) == 413
    assert _chunked(rig, b"x" * length, "GET", "/v1/models") == 413
    assert rig.engine.heard == []


@pytest.mark.parametrize("megabytes", [1.1, 3, 40])
def test_a_request_that_is_too_long_is_told_so_and_goes_no_further(rig: Rig, megabytes: float) -> None:
    """Who sends on without reading finds the connection closed."""
    try:
        assert rig.ask("POST", CHAT, body=question(int(megabytes * 1_000_000))) == 413
    except OSError:
        assert megabytes > 3
    assert rig.engine.heard == []
    assert rig.ask("POST", CHAT, body=question(999_999)) == 200


@pytest.mark.parametrize("length", ["99999999999999999999", "-1", "+5", "0x10", "5, 6"])
def test_a_length_that_is_none_is_refused(rig: Rig, length: str) -> None:
    assert rig.ask("POST", CHAT, **{"Content-Length": length}) == 400
    assert rig.engine.heard == []


def test_a_request_in_chunks_is_served_up_to_the_limit(rig: Rig) -> None:
    assert _chunked(rig, question(3_000_000)) == 413
    assert rig.engine.heard == []
    assert _chunked(rig, question(1000)) == 200


def test_two_lengths_smuggle_nothing(rig: Rig) -> None:
    with socket.create_connection(("127.0.0.1", rig.port), 20) as door:
        inner = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        door.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(inner)}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()
            + inner
        )
        door.shutdown(socket.SHUT_WR)
        while door.recv(4096):
            pass
    assert not any("health" in line for line in rig.engine.heard)


def _chunked(rig: Rig, body: bytes, method: str = "POST", path: str = CHAT) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", rig.port, timeout=20)
    try:
        connection.request(method, path, iter([body]), {"Authorization": f"Bearer {KEY}"}, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_tls_a_client_is_sent_to_where_there_is(rig: Rig) -> None:
    for path, wanted in (("/v1/models", 301), ("/health", 404)):
        connection = http.client.HTTPConnection("127.0.0.1", rig.plain, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == wanted
        if wanted == 301:
            assert (answer.headers["Location"] or "").startswith("https://127.0.0.1")
        connection.close()
    assert rig.engine.heard == []


def test_what_is_refused_says_why(rig: Rig) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", rig.port, timeout=20)
    connection.request("POST", CHAT, b"{}", {"Authorization": "Bearer wrong"})
    assert json.loads(connection.getresponse().read())["error"]["code"] == "invalid_api_key"
