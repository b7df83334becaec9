"""The endpoint, attacked: the real Traefik with the objects that a site applies, the real supervisor's answers.

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
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.launch import ports
from sparkloom.onnode.rank import answers, clients
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.probes import Probes
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render.manifests import gateway
from testbed.make import traefik
from tests.onnode.rank import ranks
from tests.render.manifests import case

pytestmark = pytest.mark.skipif(
    not traefik.archive().exists(), reason="no Traefik is built here: `python -m testbed rack build` makes one"
)
KEY, OWN = "sk-the-key-of-this-test", "sk-the-engine-s-own-key"
PATHS = ("/v1/models", "/v1/models/*", "/v1/chat/completions")
CHAT = "/v1/chat/completions"
TERMS = gateway.Terms(timeout=30, paths=PATHS, megabytes=1, rate=10, at_once=4)


class Engine(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recorder)
        self.heard: list[str] = []
        self.brought: list[dict[str, str]] = []
        self.slow = threading.Event()
        self.slow.set()


class Recorder(BaseHTTPRequestHandler):
    server: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Kept in `heard`."""

    def do_GET(self) -> None:
        self.server.heard.append(f"{self.command} {self.path}")
        self.server.brought.append(dict(self.headers.items()))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.slow.wait(20)
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


def routed(terms: gateway.Terms, engine: int, supervisor: int) -> dict[str, Any]:
    """The objects as Traefik's file provider reads them: the same rules, limits and orders; addresses of loopback."""
    launch = case.launch(case.ULTRA)
    where = {launch.port: f"http://127.0.0.1:{engine}", ports.PROBES: f"http://127.0.0.1:{supervisor}"}
    routers, middlewares = {}, {}
    for item in gateway.gateway(launch, "sparkloom", terms):
        name, spec = item["metadata"]["name"], item["spec"]
        if item["kind"] == "Middleware":
            if asked := spec.get("forwardAuth"):
                assert f":{ports.PROBES}/" in asked["address"]
                asked["address"] = f"{where[ports.PROBES]}/{asked['address'].rpartition('/')[2]}"
            middlewares[name] = spec
        if item["kind"] == "IngressRoute":
            for number, rule in enumerate(spec["routes"]):
                (service,) = rule["services"]
                routers[f"{name}-{number}"] = {
                    "entryPoints": spec["entryPoints"],
                    "rule": rule["match"],
                    "priority": rule["priority"],
                    "middlewares": [entry["name"] for entry in rule["middlewares"]],
                    "service": str(service.get("port", service["name"])),
                }
    services = {str(port): {"loadBalancer": {"servers": [{"url": url}]}} for port, url in where.items()}
    return {"http": {"routers": routers, "middlewares": middlewares, "services": services}}


class Rig:
    def __init__(self, engine: Engine, plain: int, port: int, supervisor: int, folder: Path) -> None:
        self.engine, self.plain, self.port, self.supervisor = engine, plain, port, supervisor
        self.keys = folder / "keys"

    def ask(self, method: str, path: str, key: str = KEY, body: bytes | None = None, **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {key}", **headers})
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("gateway")
    with pytest.MonkeyPatch.context() as patch:
        (folder / "key").write_text(f"{OWN}\n")
        (folder / "keys").write_text(f"{KEY}\n")
        patch.setenv(answers.KEY_FILE, str(folder / "key"))
        patch.setenv(clients.FILE, str(folder / "keys"))
        supervisor, plain, port = ranks.free_port(), ranks.free_port(), ranks.free_port()
        told = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1, "run": str(folder)}
        members = [{"rank": 0, "node": "spark1", "address": "127.0.0.1"}]
        Probes(StatusLog(Order.of({**told, "members": members}), 0), "127.0.0.1", supervisor).start()
        engine = Engine()
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        (folder / "routes.yml").write_text(yaml.safe_dump(routed(TERMS, engine.server_address[1], supervisor)))
        words = [
            program(folder),
            f"--entryPoints.{gateway.PLAIN}.address=127.0.0.1:{plain}",
            f"--entryPoints.{gateway.ENCRYPTED}.address=127.0.0.1:{port}",
            f"--providers.file.filename={folder / 'routes.yml'}",
            "--global.checknewversion=false",
            "--global.sendanonymoususage=false",
        ]
        log = (folder / "log").open("w")
        process = subprocess.Popen(words, stdout=log, stderr=log)
        rig = Rig(engine, plain, port, supervisor, folder)
        try:
            _until_it_answers(rig, folder / "log")
            yield rig
        finally:
            process.terminate()
            process.wait(10)
            engine.shutdown()


def _until_it_answers(rig: Rig, log: Path) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            if rig.ask("GET", "/v1/models") == 200:
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
    for path in (
        "/v1/models",
        "/v1/models/nvidia/Some-Model_1.0",
        "/v1/models/nvidia%2FSome-Model",
        "/v1/models/m?x=1",
    ):
        assert (path, rig.ask("GET", path)) == (path, 200)
    assert rig.ask("POST", CHAT, body=b"{}") == 200
    assert len(rig.engine.heard) == 5


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
    assert rig.ask("POST", CHAT, key, b"{}") == 401
    assert rig.engine.heard == []


def test_the_engine_hears_its_own_key_and_never_a_client_s(rig: Rig) -> None:
    """What a client says of who it is, is dropped."""
    assert rig.ask("GET", "/v1/models", **{clients.HEADER: "somebody-else"}) == 200
    (brought,) = rig.engine.brought
    assert brought["Authorization"] == f"Bearer {OWN}" and brought[clients.HEADER] == clients.name(KEY.encode())
    assert KEY not in str(brought)


@pytest.mark.parametrize(
    "name, value", [("Authorization", f"bearer {KEY}"), ("Authorization", f"BEARER  {KEY}"), ("x-api-key", KEY)]
)
def test_a_key_is_taken_as_clients_bring_it(rig: Rig, name: str, value: str) -> None:
    """A scheme is in any case (RFC 9110, 11.1), and Anthropic's clients have a header of their own."""
    assert rig.ask("GET", "/v1/models", "", **{name: value}) == 200
    (brought,) = rig.engine.brought
    assert brought["Authorization"] == f"Bearer {OWN}" and KEY not in str(brought)


def test_a_key_is_renewed_under_a_running_engine(rig: Rig) -> None:
    """As the kubelet does: another file takes the place of the old one. Two lines are two keys."""
    other = "sk-the-next-key-of-this-test"

    def given(*keys: str) -> tuple[int, int]:
        fresh = rig.keys.with_name("fresh")
        fresh.write_text("".join(f"{key}\n" for key in keys))
        fresh.replace(rig.keys)
        return rig.ask("GET", "/v1/models"), rig.ask("GET", "/v1/models", other)

    try:
        assert given(KEY, other) == (200, 200)
        assert given(other) == (401, 200)
        assert given() == (401, 401)
    finally:
        assert given(KEY) == (200, 401)


@pytest.mark.parametrize("length", [2, 999, 100_000])
def test_a_question_that_brings_a_body_goes_no_further(rig: Rig, length: int) -> None:
    """Whether it tells its length or not: a GET's was not looked at."""
    time.sleep(0.3)
    assert rig.ask("GET", "/v1/models", body=b"x" * length) == 413
    assert _chunked(rig, b"x" * length, "GET", "/v1/models") == 413
    assert rig.engine.heard == []


@pytest.mark.parametrize("megabytes", [1, 3, 40])
def test_a_request_that_is_too_long_is_told_so_and_goes_no_further(rig: Rig, megabytes: int) -> None:
    assert rig.ask("POST", CHAT, body=b"x" * (megabytes * 1_000_000)) == 413
    assert rig.engine.heard == []
    assert rig.ask("POST", CHAT, body=b"x" * 999_999) == 200


@pytest.mark.parametrize("length", ["99999999999999999999", "-1", "+5", "0x10", "5, 6"])
def test_a_length_that_is_none_is_refused(rig: Rig, length: str) -> None:
    assert rig.ask("POST", CHAT, **{"Content-Length": length}) == 400
    assert rig.engine.heard == []


def test_a_length_that_is_not_told_is_too_long(rig: Rig) -> None:
    assert _chunked(rig, b"x" * 1000) == 413
    assert rig.engine.heard == []


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


def test_a_crowd_with_one_key_is_held_back_and_a_stranger_takes_nothing_from_it(rig: Rig) -> None:
    time.sleep(2.5)  # what the tests before asked for no longer counts
    strangers = [rig.ask("GET", "/v1/models", "wrong") for _ in range(4 * TERMS.rate)]
    assert set(strangers) == {401}
    answers = [rig.ask("GET", "/v1/models") for _ in range(8 * TERMS.rate)]
    assert answers[0] == 200 and 429 in answers
    assert len(rig.engine.heard) == answers.count(200)


def test_a_flood_of_strangers_keeps_neither_a_client_nor_the_kubelet_waiting(rig: Rig) -> None:
    """All of them come from Traefik's one address, as they do behind K3s' load balancer; each with another key."""
    time.sleep(2.5)
    over, said = threading.Event(), Counter[int]()

    def stranger(number: int) -> None:
        while not over.is_set():
            try:
                said[rig.ask("POST", CHAT, f"stranger-{number}-{time.monotonic()}", b"{}")] += 1
            except OSError:
                said[0] += 1

    def measured(rounds: int) -> tuple[float, float]:
        client, kubelet = [], []
        for _ in range(rounds):
            begun = time.monotonic()
            assert rig.ask("GET", "/v1/models") == 200
            client.append(time.monotonic() - begun)
            begun = time.monotonic()
            probe = http.client.HTTPConnection("127.0.0.1", rig.supervisor, timeout=20)
            probe.request("GET", "/live")
            assert probe.getresponse().status in (200, 503)
            probe.close()
            kubelet.append(time.monotonic() - begun)
            time.sleep(0.15)
        return max(client), max(kubelet)

    quiet = measured(10)
    crowd = [threading.Thread(target=stranger, args=(number,), daemon=True) for number in range(200)]
    for thread in crowd:
        thread.start()
    try:
        time.sleep(1)
        flooded = measured(20)
    finally:
        over.set()
        for thread in crowd:
            thread.join(30)
    print(f"client, kubelet at most: quiet {quiet}, flooded {flooded}; strangers were told {dict(said)}")
    assert said[401] > 200 and set(said) <= {0, 401} and all(line.startswith("GET") for line in rig.engine.heard)
    assert flooded[0] < 15 and flooded[1] < 15, "all on one machine, the flood's own program too"


def test_no_more_are_on_their_way_than_the_site_says(rig: Rig) -> None:
    time.sleep(2.5)
    rig.engine.slow.clear()
    try:
        answers: list[int] = []
        asking = [threading.Thread(target=lambda: answers.append(rig.ask("GET", "/v1/models"))) for _ in range(10)]
        for thread in asking:
            thread.start()
        limit = time.monotonic() + 15
        while len(answers) < 10 - TERMS.at_once and time.monotonic() < limit:
            time.sleep(0.05)
        assert answers == [429] * (10 - TERMS.at_once) and len(rig.engine.heard) == TERMS.at_once
    finally:
        rig.engine.slow.set()
        for thread in asking:
            thread.join(20)


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
