"""The proof of an endpoint: a server with TLS here plays Traefik and the engine, once right and in wrong ways."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory
from sparkloom.onnode import smoke
from sparkloom.render import certificates
from sparkloom.site import endpoint
from sparkloom.site.tasks import gateway
from tests import inventories
from tests.places import REPO

KEY = "sk-the-right-key-0123456789"


class Front(BaseHTTPRequestHandler):
    """What the router and an engine behind it answer together."""

    open_paths: tuple[str, ...] = ()
    asks = True
    streamed: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._say(200 if self._allowed() else 401, {"data": [{"id": "model"}]})
        else:
            self._say(200 if self.path in self.open_paths else 404, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self._allowed():
            self._say(401, {"error": "Unauthorized"})
            return
        self.streamed.append(self.path)
        self.send_response(200)
        self.end_headers()
        for word in ("one ", "two"):
            event = {"choices": [{"delta": {"content": word}}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _allowed(self) -> bool:
        return not self.asks or self.headers.get("authorization") == f"Bearer {KEY}"

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path, names: list[str], **changes: Any) -> Iterator[endpoint.Endpoint]:
    pair = certificates.own(folder, "test", names)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Changed", (Front,), changes))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield endpoint.Endpoint("127.0.0.1", server.server_address[1], names[0], pair.trust, timeout=10)
    finally:
        server.shutdown()
        server.server_close()


def prove(place: endpoint.Endpoint, key: str = KEY) -> dict[str, Any]:
    return endpoint.prove(place, key, 8, lambda text: None)


@pytest.mark.parametrize("name", ["127.0.0.1", "spark.example"])
def test_a_right_endpoint_streams(tmp_path: Path, name: str) -> None:
    with served(tmp_path, [name]) as place:
        assert prove(place)["text"] == "one two"
        assert place.url == f"https://{name}:{place.port}/v1"


def test_where_all_sleep_the_doors_are_proved_and_nobody_is_asked(tmp_path: Path) -> None:
    streamed: list[str] = []
    with served(tmp_path, ["127.0.0.1"], streamed=streamed) as place:
        endpoint.prove_doors(place)
        assert streamed == []
        prove(place)
        assert streamed == [endpoint.CHAT]
    with served(tmp_path, ["127.0.0.1"], open_paths=("/health",)) as place, pytest.raises(smoke.NoAnswer):
        endpoint.prove_doors(place)


def test_where_all_were_stopped_nobody_is_asked_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("prove", "prove_doors", "prove_router"):
        monkeypatch.setattr(gateway.endpoint, name, lambda *_, name=name: asked.append(name))
    monkeypatch.setattr(gateway.endpoint, "opened", lambda _: "127.0.0.1")
    monkeypatch.setattr(gateway.client, "of", lambda _: None)
    monkeypatch.setattr(gateway.keys, "read", lambda _: KEY)
    context: Any = SimpleNamespace(cluster=None, say=lambda *_, **__: None)
    told = gateway.prove(context, "", 443, "", "key", 8, 5.0, stopped=["glm"])
    assert asked == ["prove_doors", "prove_router"]
    assert told["msg"] == "https://127.0.0.1/v1 is open, and all that it leads to sleep or are stopped; stopped: glm"


def test_an_engine_that_asks_for_no_key_is_named(tmp_path: Path) -> None:
    with (
        served(tmp_path, ["127.0.0.1"], asks=False) as place,
        pytest.raises(smoke.NoAnswer, match="without a key answered 200"),
    ):
        prove(place)


@pytest.mark.parametrize("path", endpoint.CLOSED)
def test_an_open_path_is_named(tmp_path: Path, path: str) -> None:
    with served(tmp_path, ["127.0.0.1"], open_paths=(path,)) as place, pytest.raises(smoke.NoAnswer, match=path):
        prove(place)


def test_another_key_does_not_open(tmp_path: Path) -> None:
    with served(tmp_path, ["127.0.0.1"]) as place, pytest.raises(smoke.NoAnswer, match="401"):
        prove(place, "sk-another-key-0123456789")


def test_a_certificate_for_another_name_is_said(tmp_path: Path) -> None:
    with served(tmp_path, ["elsewhere.example"]) as place:
        wrong = endpoint.Endpoint(place.address, place.port, "spark.example", place.trust, timeout=5)
        assert "certificate does not fit" in endpoint.settled(wrong, 1, sleep=lambda _: None)


def test_nobody_there_is_said() -> None:
    assert "Error" in endpoint.settled(endpoint.Endpoint("127.0.0.1", 9), 0.2, sleep=lambda _: None)


class Balanced:
    """A cluster whose load balancer leads in at these addresses."""

    namespace = "sparkloom"

    def __init__(self, addresses: list[str]) -> None:
        self.addresses, self.asked = addresses, list[str]()

    def led_in(self, name: str) -> list[str]:
        self.asked.append(name)
        return self.addresses


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    """The virtual rack's inventory: machines without addresses of their own, a gateway's folder beside the rack."""
    folder = tmp_path / "kind"
    shutil.copytree(REPO / "inventories/kind", folder)
    laptop = folder / "group_vars/all/laptop.yml"
    laptop.write_text(laptop.read_text().replace(".build/rack/gateway", str(tmp_path / "gateway")))
    for name in ("ca.pem", "api-key"):
        (tmp_path / "gateway").mkdir(exist_ok=True)
        (tmp_path / "gateway" / name).write_text("x")
    return folder


def test_a_site_without_addresses_is_reached_as_its_cluster_says_with_its_own_key(
    rack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sparkloom bench -i inventories/kind`, as it is documented, found no endpoint."""
    asked = Balanced(["172.19.0.5"])
    monkeypatch.setattr(endpoint.client, "of", lambda _: asked)
    known = endpoint.reach(inventory.load(rack), rack)
    assert known == ("https://172.19.0.5", tmp_path / "gateway/ca.pem", tmp_path / "gateway/api-key")
    assert asked.asked == ["gateway"]


def test_without_any_address_it_says_what_names_one(rack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint.client, "of", lambda _: Balanced([]))
    with pytest.raises(InputError, match=r"spark1 has no management_address, and the cluster has no Service .*--url"):
        endpoint.reach(inventory.load(rack), rack)


def test_an_ingress_is_asked_by_its_name(rack: Path) -> None:
    laptop = rack / "group_vars/all/laptop.yml"
    text = laptop.read_text().replace('gateway_ingress: ""', "gateway_ingress: nginx")
    laptop.write_text(f"{text}gateway_names: [spark.example.org]\n")
    assert endpoint.reach(inventory.load(rack), rack).url == "https://spark.example.org"


def test_who_gets_no_address_is_told_what_to_look_at() -> None:
    with pytest.raises(InputError, match=r"Service sparkloom/gateway:.* expected K3s' ServiceLB .* gateway_ingress"):
        endpoint.opened(Balanced([]), 0)  # type: ignore[arg-type]


def test_a_site_with_addresses_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(endpoint.client, "of", lambda _: pytest.fail("asked a cluster"))
    site = inventories.own(tmp_path)
    known = endpoint.reach(inventory.load(site), site)
    assert known.url.startswith("https://")
