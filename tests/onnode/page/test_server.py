"""The page's server on loopback: what it gives, what it refuses, and what it tells while the cluster is away."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.onnode.page import server as program
from sparkloom.onnode.page.server import Kept, Server
from sparkloom.render.manifests import page
from tests.onnode.now.recorded import Recorded
from tests.onnode.page import front


@pytest.fixture
def server(site: Recorded) -> Iterator[Server]:
    with front.running(site) as running:
        yield running


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_every_file_of_the_page_has_its_kind_and_the_same_strict_headers(server: Server) -> None:
    names = ["/", *(f"/page/{name}" for name in page.static() if name != "index.html")]
    assert len(names) > 5
    for name in names:
        answer, body = ask(server, name)
        assert answer.status == 200 and body, name
        assert answer.headers["Content-Type"] == program.KINDS[Path(name).suffix or ".html"]
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Server"] == "sparkloom"
        again, empty = ask(server, name, If_None_Match=answer.headers["ETag"])
        assert (again.status, empty) == (304, b"")


def test_nothing_inline_and_nothing_of_others_is_in_the_files() -> None:
    """The policy would stop it; it is not even tried. No text becomes markup."""
    texts = page.static()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=\"|\bstyle=|<style", texts["index.html"])
    for name, text in texts.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|localStorage|document\.cookie", text
        )
        outside = re.findall(r"https?://[\w.]+", text)
        assert set(outside) <= {"http://www.w3.org"}, name  # the name of SVG


def test_the_picture_is_made_once_for_all_who_ask_and_says_how_old_it_is(site: Recorded) -> None:
    with front.running(site, every=30) as server:
        asked = [threading.Thread(target=ask, args=(server, program.DATA)) for _ in range(20)]
        for one in asked:
            one.start()
        for one in asked:
            one.join()
        answer, body = ask(server, program.DATA)
        assert sum(path.endswith("/nodes") for path in site.asked) == 1
        assert answer.headers["Cache-Control"] == "no-store" and int(answer.headers["Age"]) < 10
        assert json.loads(body)["serving"] is True


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_only_get(server: Server, method: str) -> None:
    answer, _ = ask(server, "/", method)
    assert answer.status == 405 and answer.headers["Allow"] == "GET" and answer.headers["Connection"] == "close"


@pytest.mark.parametrize(
    "path",
    ["/page/../etc/passwd", "/page/..%2f..%2fetc%2fpasswd", "/page/%2e%2e/page.js", "/page/",
     "/page/index.html", "/page/page.js/", "/page/data/../page.js", "/page/server.py", "/page/data/other.json",
     "/page\\page.js", "http://elsewhere/page/page.js", "/etc/passwd", "/metrics", "*"],
)  # fmt: skip
def test_a_path_that_is_no_file_of_the_page_is_nothing(server: Server, path: str) -> None:
    answer, body = ask(server, path)
    assert answer.status == 404 and body == b"no such file here\n"


def test_a_get_with_a_body_ends_its_connection(server: Server) -> None:
    """What follows could be read as another request by one of two."""
    answer, _ = ask(server, "/", Content_Length="5")
    assert answer.status == 400 and answer.headers["Connection"] == "close"
    answer, _ = ask(server, "/", Transfer_Encoding="chunked")
    assert answer.status == 400


@pytest.mark.parametrize("sent", [b"\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70000])
def test_what_is_no_request_is_refused_without_a_page_of_the_library(server: Server, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=10) as plug:
        plug.sendall(sent + b"\n")
        plug.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: plug.recv(4096), b""))
    assert b"<html" not in said.lower() and b"Traceback" not in said
    assert ask(server, "/live")[0].status == 200


def test_a_cluster_that_goes_away_leaves_the_last_picture_with_its_age_and_why(site: Recorded) -> None:
    with front.running(site, every=0.05) as server:
        first = json.loads(ask(server, program.DATA)[1])
        site.away = "the cluster's API does not answer: timed out"
        time.sleep(1.2)
        answer, body = ask(server, program.DATA)
        shown = json.loads(body)
        assert answer.status == 200 and int(answer.headers["Age"]) >= 1
        assert shown["problems"] == [site.away] and shown["groups"] == first["groups"]


def test_a_cluster_that_never_answered_is_said(site: Recorded) -> None:
    site.away = "this pod has no access to the cluster's API: no token"
    with front.running(site) as server:
        answer, body = ask(server, program.DATA)
        assert answer.status == 503 and answer.headers["Retry-After"] == "5"
        assert json.loads(body)["error"]["message"] == site.away


def test_what_nobody_thought_of_does_not_end_the_looks() -> None:
    def look() -> dict[str, object]:
        raise KeyError("metadata")

    kept = Kept(look, every=0)  # type: ignore[arg-type]
    assert kept.picture() is None and "cannot be read: KeyError" in kept.problem
    assert kept.picture() is None


def test_a_slow_look_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkloom.onnode.page.server.WAITS", 0.1)
    gate = threading.Event()

    def look() -> dict[str, object]:
        gate.wait(10)
        return {"problems": []}

    kept = Kept(look, every=0)  # type: ignore[arg-type]
    begun = time.monotonic()
    assert kept.picture() is None and time.monotonic() - begun < 5
    gate.set()
    limit = time.monotonic() + 10
    while kept.picture() is None:
        assert time.monotonic() < limit


def test_a_crowd_keeps_nobody_out(server: Server) -> None:
    """Who waits longest makes room."""
    address = ("127.0.0.1", server.server_address[1])
    plugs = [socket.create_connection(address, timeout=10) for _ in range(program.AT_ONCE)]
    assert ask(server, "/live")[0].status == 200
    assert plugs[0].recv(1) == b""
    for plug in plugs:
        plug.close()
    assert ask(server, "/live")[0].status == 200
