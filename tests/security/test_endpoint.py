"""The endpoint, attacked: the real router with a site's files, where it ends TLS, as a client reaches it.

Seen with the route of before (commit 4b940d3, `PathPrefix(/v1)` alone): 18 of the closed spellings below, PUT, DELETE
and OPTIONS, and 40 MB without a key reached the engine. The engine here is a recorder: what it has not heard, no
engine hears.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render import certificates
from sparkloom.render.router import Group
from tests.render.router.running import Router, swap
from tests.render.router.waker import Probe
from tests.until import until

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


class Rig:
    """`tls`: the folder of its certificate, as the kubelet mounts a Secret."""

    def __init__(self, engine: Engine, router: Router, authority: Path, tls: Path) -> None:
        self.engine, self.router, self.authority, self.tls = engine, router, authority, tls

    def connect(self) -> http.client.HTTPConnection:
        return self.router.connect()

    def ask(self, method: str, path: str, key: str = KEY, body: bytes | None = None, **headers: str) -> int:
        connection = self.connect()
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {key}", **headers})
            return connection.getresponse().status
        finally:
            connection.close()

    def say(self, text: bytes) -> bytes:
        """What it answers to these bytes, through TLS."""
        context = ssl.create_default_context(cafile=self.router.trust)
        port = self.router.terms.tls_port
        with (
            socket.create_connection(("127.0.0.1", port), 20) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as door,
        ):
            door.settimeout(20)
            door.sendall(text)
            answer = b""
            while piece := door.recv(4096):
                answer += piece
        return answer


def certified(authority: Path, tls: Path) -> str:
    """Another certificate at each call; the hash of it."""
    (authority / "tls.pem").unlink(missing_ok=True)
    pair = certificates.own(authority, "test", ["127.0.0.1"])
    swap(tls, {"tls.crt": pair.certificate, "tls.key": pair.key})
    return pair.certificate


def question(length: int = 0) -> bytes:
    """Of so many bytes at least."""
    told = {"model": MODEL, "messages": [{"role": "user", "content": ""}]}
    told["messages"][0]["content"] = "x" * (length - len(json.dumps(told)))  # type: ignore[index]
    return json.dumps(told).encode()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("gateway")
    authority, tls = folder / "authority", folder / "tls"
    authority.mkdir()
    certified(authority, tls)
    (folder / "own").write_text(OWN)
    engine, probe = Engine(), Probe()
    threading.Thread(target=engine.serve_forever, daemon=True).start()
    group = Group(MODEL, "127.0.0.1", engine.server_address[1], str(folder / "own"), aliases=("m",), label="m",
                  health_port=probe.port, health_path="/ready")  # fmt: skip
    more: dict[str, Any] = {"megabytes": 1, "paths": PATHS, "timeout": 30, "tls": str(tls)}
    router = Router(folder, [group], [Key(name="owner", hash=hashed(KEY))], [], str(authority / "ca.pem"), **more)
    rig = Rig(engine, router, authority, tls)
    try:
        until(lambda: _answers(rig), 60)
        yield rig
    finally:
        router.close()
        engine.shutdown()
        probe.close()


def _answers(rig: Rig) -> bool:
    try:
        return rig.ask("POST", CHAT, body=question()) == 200
    except OSError:
        return False


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
    assert rig.ask("GET", path) == (400 if "%00" in path else 404)
    assert rig.engine.heard == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "HEAD", "CONNECTX"])
def test_other_methods_are_closed(rig: Rig, method: str) -> None:
    assert rig.ask(method, CHAT) == (400 if method == "CONNECTX" else 404)
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


INNER = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = question().decode()
SMUGGLED = {
    "CL and TE": f"Content-Length: {len(INNER)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{INNER}",
    "two lengths": f"Content-Length: 0\r\nContent-Length: {len(INNER)}\r\n\r\n{INNER}",
    "two encodings": f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{INNER}",
    "an encoding that nobody knows": f"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{INNER}",
    "a folded header": f"X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n{INNER}",
    "a name with a blank": f"Content-Length : {len(INNER)}\r\nContent-Length: 0\r\n\r\n{INNER}",
}


@pytest.mark.parametrize("how", SMUGGLED)
def test_nothing_is_smuggled(rig: Rig, how: str) -> None:
    begin = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n"
    answer = rig.say((begin + SMUGGLED[how]).encode())
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), answer
    assert answer.count(b"HTTP/1.1 ") == 1 and rig.engine.heard == []


def test_a_doubled_key_is_no_key(rig: Rig) -> None:
    begin = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\n"
    assert rig.say(f"{begin}\r\n".encode()).startswith(b"HTTP/1.1 200")
    assert rig.say(f"{begin}Authorization: Bearer wrong\r\n\r\n".encode()).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_no_other_protocol_is_taken(rig: Rig, protocol: str) -> None:
    begin = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(BODY)}\r\n"
    more = f"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: {protocol}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    answer = rig.say(f"{begin}{more}\r\n{BODY}".encode())
    assert answer.startswith(b"HTTP/1.1 ") and not answer.startswith(b"HTTP/1.1 101"), answer


def test_a_proxy_of_somebody_speaks_http_1_0(rig: Rig) -> None:
    begin = f"POST {CHAT} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    assert b" 200 " in rig.say((begin + BODY).encode()).partition(b"\r\n")[0]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
def test_old_tls_is_refused(rig: Rig) -> None:
    for version, protocol, wanted in (
        (ssl.TLSVersion.TLSv1_1, "http/1.1", None),
        (ssl.TLSVersion.TLSv1_2, "http/1.1", "http/1.1"),
        (ssl.TLSVersion.TLSv1_3, "http/1.1", "http/1.1"),
    ):
        context = ssl.create_default_context(cafile=rig.router.trust)
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols([protocol])
        with socket.create_connection(("127.0.0.1", rig.router.terms.tls_port), 20) as raw:
            if wanted is None:
                with pytest.raises(OSError):
                    context.wrap_socket(raw, server_hostname="127.0.0.1")
                continue
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as door:
                assert door.selected_alpn_protocol() == wanted


def test_a_renewed_certificate_is_taken_while_a_connection_goes_on(rig: Rig) -> None:
    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", rig.router.terms.tls_port))

    connection = rig.connect()
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEY}"})
    assert connection.getresponse().read()
    before, through = shown(), connection.sock
    renewed = certified(rig.authority, rig.tls)
    until(lambda: shown().strip() == renewed.strip(), 20)
    assert renewed.strip() != before.strip()
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEY}"})
    assert connection.getresponse().status == 200 and connection.sock is through
    connection.close()


def test_http_2_is_not_spoken_whatever_a_client_offers(rig: Rig) -> None:
    """An unread stream of it holds a place while its connection is read: TCP's timeout ends none of these."""
    context = ssl.create_default_context(cafile=rig.router.trust)
    context.set_alpn_protocols(["h2", "http/1.1"])
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with (
        socket.create_connection(("127.0.0.1", rig.router.terms.tls_port), 20) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as door,
    ):
        assert door.selected_alpn_protocol() == "http/1.1"
        door.sendall(preface)
        assert door.recv(4096).startswith(b"HTTP/1.1 4")


def test_what_was_used_is_told_at_the_port_for_metrics_alone(rig: Rig) -> None:
    assert rig.ask("GET", "/metrics") == rig.ask("GET", "/stats/prometheus") == 404
    assert "sparkloom_router_table_info" in "".join(rig.router.series())


def _chunked(rig: Rig, body: bytes, method: str = "POST", path: str = CHAT) -> int:
    connection = rig.connect()
    try:
        connection.request(method, path, iter([body]), {"Authorization": f"Bearer {KEY}"}, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_tls_a_client_is_sent_to_where_there_is(rig: Rig) -> None:
    for path, wanted in (("/v1/models", 308), ("/health", 404)):
        connection = rig.router.connect(rig.router.terms.port)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == wanted
        if wanted == 308:
            assert (answer.headers["Location"] or "").startswith("https://127.0.0.1")
        connection.close()
    assert rig.engine.heard == []


def test_what_is_refused_says_why(rig: Rig) -> None:
    connection = rig.connect()
    connection.request("POST", CHAT, b"{}", {"Authorization": "Bearer wrong"})
    assert json.loads(connection.getresponse().read())["error"]["code"] == "invalid_api_key"
