"""The cluster from inside a pod: a TLS server with an authority of its own, and a token that is renewed."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any, ClassVar

import pytest

from sparkloom.onnode.kube import InCluster, Unreached
from sparkloom.render import certificates


class Answers(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str, str]]] = []
    status, body = 200, b'{"items": []}'

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers["Authorization"] or "", self.headers["Accept"] or ""))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What a kubelet puts into a pod, for a server that runs here."""
    pair = certificates.own(tmp_path / "authority", "site", ["127.0.0.1"])
    chain = tmp_path / "chain.pem"
    chain.write_text(pair.certificate + pair.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "ca.crt").write_text(Path(pair.trust).read_text())
    (folder / "token").write_text("first\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_address[1]))
    Answers.seen, Answers.status, Answers.body = [], 200, b'{"items": []}'
    yield folder
    server.shutdown()
    server.server_close()


def test_it_asks_with_the_token_of_now(given: Path) -> None:
    cluster = InCluster(given)
    assert cluster.api("/api/v1/nodes", {"labelSelector": "a=b"}, "application/json") == {"items": []}
    (given / "token").write_text("second\n")
    cluster.api("/api/v1/nodes", {}, "application/json")
    assert Answers.seen == [
        ("/api/v1/nodes?labelSelector=a%3Db", "Bearer first", "application/json"),
        ("/api/v1/nodes", "Bearer second", "application/json"),
    ]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(403, b"{}", "answered 403"), (200, b"<html>", "no JSON"), (500, b"", "answered 500")],
)
def test_what_is_no_answer_is_one_line(given: Path, status: int, body: bytes, words: str) -> None:
    Answers.status, Answers.body = status, body
    with pytest.raises(Unreached, match=words):
        InCluster(given).api("/api/v1/nodes", {}, "application/json")


def test_a_server_that_another_authority_vouches_for_is_not_told_the_token(given: Path, tmp_path: Path) -> None:
    other = certificates.own(tmp_path / "other", "site", ["127.0.0.1"])
    (given / "ca.crt").write_text(Path(other.trust).read_text())
    with pytest.raises(Unreached, match="certificate"):
        InCluster(given).api("/api/v1/nodes", {}, "application/json")
    assert Answers.seen == []


def test_a_pod_is_asked_at_its_address_and_without_a_token(given: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    pod = NS(metadata=NS(name="glm-rank0-0"), status=NS(pod_ip="127.0.0.1"))
    assert json.loads(InCluster(given).ask(pod, server.server_address[1], "/status")) == {"items": []}
    assert Answers.seen[-1][:2] == ("/status", "")
    server.shutdown()
    server.server_close()
    with pytest.raises(Unreached, match="glm-rank0-0 does not answer"):
        InCluster(given).ask(pod, server.server_address[1], "/status")
    with pytest.raises(Unreached, match="has no address"):
        InCluster(given).ask(NS(metadata=NS(name="x"), status=NS(pod_ip=None)), 1, "/status")
