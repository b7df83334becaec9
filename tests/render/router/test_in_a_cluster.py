"""What the router meets in a cluster: a folder that is swapped, engines that come and go, a flood, its own end."""

from __future__ import annotations

import concurrent.futures
import json
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import Entry
from sparkloom.render.manifests import router as objects
from sparkloom.render.router import envoy, own_key_file
from sparkloom.site.router import version_of_files
from testbed.standins.pacing.process import Engine
from tests.render.router.running import ALICE, BOB, CHAT, PEOPLE, Router, asked, bearer, running
from tests.until import until

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    made = {"alpha": Engine("alpha", "ttft=0.05", "rate=60"), "beta": Engine("beta", "ttft=0.05", "rate=60")}
    yield made
    for engine in made.values():
        engine.down()


class Page(BaseHTTPRequestHandler):
    heard: list[dict[str, str]]

    def do_GET(self) -> None:
        self.heard.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def page() -> Iterator[ThreadingHTTPServer]:
    handler = type("Heard", (Page,), {"heard": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture(scope="module")
def router(
    tmp_path_factory: pytest.TempPathFactory, engines: dict[str, Engine], page: ThreadingHTTPServer
) -> Iterator[Router]:
    where = {"page": f"127.0.0.1:{page.server_address[1]}"}
    with running(tmp_path_factory.mktemp("router"), engines, terms=where) as made:
        yield made


def version(router: Router) -> str:
    name = next(name for name in router.series() if name.startswith("sparkloom_router_table_info"))
    return name.partition('"')[2].rstrip('"}')


def test_it_says_by_which_tables_it_goes_without_being_asked_for_a_model(router: Router) -> None:
    def wanted() -> str:
        files = envoy.files(router.groups, PEOPLE[:2], router.terms)
        return version_of_files(files)

    router.give(PEOPLE[:2])
    until(lambda: version(router) == wanted(), 10)
    router.give(PEOPLE)
    until(lambda: version(router) != wanted(), 10)


def test_a_group_comes_and_goes_while_another_streams(router: Router, engines: dict[str, Engine]) -> None:
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 200)), bearer(ALICE))
    answer = connection.getresponse()
    answer.read(100)
    before, groups = router.series(), router.groups
    more = Engine("gamma", "ttft=0.05")
    try:
        key = router.folder / own_key_file("gamma", more.key)
        router.groups = [
            groups[0],
            replace(groups[1], name="gamma", port=more.port, key_file=router.terms.file(key.name)),
        ]
        router.swap({**envoy.files(router.groups, PEOPLE, router.terms), key.name: more.key})
        until(lambda: router.post("gamma").status == 200, 15)
        assert router.post("beta").status == 404
        assert b"[DONE]" in answer.read(), "what streamed of another group came to its end"
        after = router.series()
        assert all(after[name] >= value for name, value in before.items() if "_total" in name)
    finally:
        connection.close()
        more.down()
        router.groups = groups
        router.give(PEOPLE)
        until(lambda: router.post("beta").status == 200, 15)


def test_an_engine_s_new_key_is_taken(router: Router, engines: dict[str, Engine]) -> None:
    """Same group, same address: another file, because Envoy keeps one whose name did not change."""
    groups = router.groups
    wrong, right = "sk-the-key-before", engines["beta"].key

    def give(own: str) -> None:
        file = router.folder / own_key_file("beta", own)
        router.groups = [groups[0], replace(groups[1], key_file=router.terms.file(file.name))]
        router.swap({**envoy.files(router.groups, PEOPLE, router.terms), file.name: own})

    try:
        give(wrong)
        until(lambda: router.post("beta").status == 401, 10)
        give(right)
        until(lambda: router.post("beta").status == 200, 10)
    finally:
        router.groups = groups
        router.give(PEOPLE)


def test_a_group_that_is_listed_and_does_not_run(router: Router) -> None:
    """Its Service is not there: the name is nobody's."""
    groups = router.groups
    router.groups = [*groups, replace(groups[0], name="away", address="away.invalid", port=30000, aliases=())]
    router.give(PEOPLE)
    try:
        until(lambda: router.post("away").status != 404, 10)
        begun = time.monotonic()
        answer = router.post("away")
        assert answer.status == 503 and answer.code == "model_not_up" and answer.headers["retry-after"] == "15"
        assert time.monotonic() - begun < 1 and router.post("alpha").status == 200
        assert router.get("/v1/models/away").json["state"] == "down"
    finally:
        router.groups = groups
        router.give(PEOPLE)


def test_the_page_s_files_are_for_everybody_and_its_data_for_a_key(router: Router, page: Any) -> None:
    heard = page.RequestHandlerClass.heard
    for path in ("/", "/page/app.js", "/page/style.v2.css"):
        answer = router.get(path, "")
        assert (answer.status, answer.body) == (200, b"page"), path
    assert router.get("/page/data/now.json", "").status == router.get("/page/data/now.json", "sk-wrong").status == 401
    heard.clear()
    for headers in ({"Cookie": "a=b"}, {"x-api-key": BOB}):
        assert router.ask("GET", "/page/data/now.json", BOB, headers=headers).status == 200
    assert not any(BOB in value for one in heard for value in one.values())
    assert not any(name in one for one in heard for name in ("authorization", "x-api-key", "cookie"))


def test_what_the_page_does_is_asked_for_with_a_key_that_comes_along(router: Router, page: Any) -> None:
    heard = page.RequestHandlerClass.heard
    heard.clear()
    for key in ("", "sk-wrong"):
        assert router.ask("POST", "/page/act/log", key, body="{}").status == 401
    assert router.ask("GET", "/page/act/log", ALICE).status == 404, "nothing is done by a link"
    assert router.ask("POST", "/page/act/log", ALICE, body="a" * 70_000).status == 413
    assert router.ask("POST", "/page/act/log/x", ALICE, body="{}").status == 404
    assert router.ask("POST", "/page/data/status.json", ALICE, body="{}").status == 404
    assert heard == []
    more = {"Origin": "https://x", "Cookie": "a=b", "x-api-key": BOB, "X-Sparkloom-Token": "t"}
    assert router.ask("POST", "/page/act/log", ALICE, body="{}", headers=more).status == 200
    (one,) = heard
    assert one["authorization"] == f"Bearer {ALICE}"
    assert one["origin"] == "https://x" and one["x-sparkloom-token"] == "t"
    assert "cookie" not in one and "x-api-key" not in one


def test_a_key_that_was_made_or_taken_on_the_page_is_so_at_once(router: Router) -> None:
    files = envoy.files(router.groups, PEOPLE, router.terms)
    kept = key_table.read(files["keys"])
    made = Entry(key_table.digest("sk-eve"), "eve", models="beta", by="alice")
    changed = key_table.revoked(key_table.added(kept, made), "bob", "alice")
    assert router.post("alpha", BOB).status == 200 and router.post("beta", "sk-eve").status == 401
    router.swap({**files, "keys": key_table.text(changed)})
    try:
        assert router.post("alpha", BOB).status == 401 and router.post("beta", "sk-eve").status == 200
        assert router.post("alpha", "sk-eve").code == "model_not_found" and router.post("alpha").status == 200
    finally:
        router.give(PEOPLE)


@pytest.mark.parametrize(
    "path",
    ["/page", "/page/", "/page/a/b", "/page/data/", "/page/data/now.txt", "/page/data/x/now.json", "/page/../metrics",
     "/page/..%2fmetrics", "/page/data/..%2fnow.json", "/page/.hidden"],
)  # fmt: skip
def test_other_paths_do_not_lead_to_the_page(router: Router, page: Any, path: str) -> None:
    page.RequestHandlerClass.heard.clear()
    assert router.get(path, ALICE).status in (307, 400, 404)
    assert router.ask("POST", "/", ALICE, body="{}").status == router.ask("POST", "/page/app.js").status == 404
    assert page.RequestHandlerClass.heard == []


def test_readiness_is_told_at_a_port_of_its_own(router: Router) -> None:
    assert router.ask("GET", "/ready", port=router.terms.probe_port).status == 200
    for path in ("/quitquitquit", "/metrics", "/v1/models", "/stats"):
        assert router.ask("GET", path, port=router.terms.probe_port).status == 404


def resident(router: Router) -> float:
    """Its highest, MiB."""
    text = Path(f"/proc/{router.process.pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def sent_and_heard(router: Router, key: str, body: bytes) -> int:
    """The status, also where it comes before all was sent, as a proxy hears it; 0 where it was cut off."""
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    heard, left = b"", memoryview(head.encode() + body)
    with socket.create_connection(("127.0.0.1", router.terms.port), timeout=60) as plug:
        while b"\r\n" not in heard:
            readable, writable, _ = select.select([plug], [plug] if left else [], [], 60)
            try:
                if readable:
                    if not (piece := plug.recv(65536)):
                        return 0
                    heard += piece
                elif writable:
                    left = left[plug.send(left[: 1 << 18]) :]
            except OSError:
                return 0
    return int(heard.split()[1])


@pytest.mark.parametrize(("key", "refused"), [(ALICE, 503), ("sk-of-nobody-at-all", 401)])
def test_a_flood_is_answered_and_not_taken_in(
    tmp_path: Path, engines: dict[str, Engine], key: str, refused: int
) -> None:
    """Bodies of 30 MB to a container of 512 MiB, forty at a time: a few pass, the others hear why they do not; who asks
    for less is served, and the kubelet is answered all the time."""
    body = json.dumps(asked("alpha", 1, "a" * (30 << 20))).encode()
    with running(tmp_path, engines, terms={"memory": 512, "megabytes": 40}) as router:
        seen, probed = [], []
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            asking = [pool.submit(sent_and_heard, router, key, body) for _ in range(80)]
            while not all(future.done() for future in asking):
                probed.append(router.ask("GET", "/ready", port=router.terms.probe_port).status)
                assert router.post("beta").status == 200
                time.sleep(0.2)
            seen = [future.result() for future in asking]
        assert set(seen) <= {200, refused} and refused in seen and (200 in seen) == (key == ALICE)
        assert set(probed) == {200} and router.process.poll() is None
        assert resident(router) < router.terms.memory
        name = (
            f'sparkloom_router_requests_total{{person="{"alice" if key == ALICE else ""}",model="",status="{refused}"}}'
        )
        assert router.series()[name] == seen.count(refused)
        assert sent_and_heard(router, ALICE, body) == 200, "there is room again"


def test_who_leaves_while_he_sends_leaves_no_room_taken(tmp_path: Path, engines: dict[str, Engine]) -> None:
    body = json.dumps(asked("alpha", 1, "a" * (30 << 20))).encode()
    with running(tmp_path, engines, terms={"memory": 512, "megabytes": 40}) as router:
        for _ in range(8):
            connection = router.connect()
            connection.request("POST", CHAT, body[:1000], {**bearer(ALICE), "Content-Length": str(len(body))})
            time.sleep(0.05)
            connection.close()
        time.sleep(0.2)
        assert sent_and_heard(router, ALICE, body) == 200


def test_it_ends_when_what_is_on_its_way_has_come_to_its_end(tmp_path: Path, engines: dict[str, Engine]) -> None:
    """Its hook before the end, as a pod runs it."""
    words = {"longest": 60, "statistics": envoy.STATISTICS}
    with running(tmp_path, engines) as router:
        script = objects.DRAIN % {**words, "admin": router.terms.admin_port}
        connection = router.connect()
        connection.request("POST", CHAT, json.dumps(asked("alpha", 600)), bearer(ALICE))
        answer = connection.getresponse()
        answer.read(100)
        hook = subprocess.Popen(["/bin/bash", "-c", script])
        time.sleep(5)
        assert hook.poll() is None and router.post("alpha").status == 200, "who comes late is served"
        assert b"[DONE]" in answer.read()
        connection.close()
        assert hook.wait(10) == 0
