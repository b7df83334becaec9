"""The API of a cluster: what passes by itself is asked again, and what stays is one line with the right cure."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, ProtocolError

from sparkloom.site import ansible, patience
from sparkloom.site.client import Client
from sparkloom.site.objects import Api

FORBIDDEN = json.dumps({"message": 'pods is forbidden: User "admin" cannot list resource "pods"', "code": 403})


class Server(BaseHTTPRequestHandler):
    """An API server that says these statuses first, then lists no pods."""

    first: list[int]
    asked: list[str]
    busy: list[int]
    ready = 200

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self._say(self.ready)
            return
        if "/silent" in self.path:
            time.sleep(3)
        if self.busy:
            self.busy.pop()
            time.sleep(1)
        self.asked.append("GET")
        self._say(self.first.pop(0) if self.first else 200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.asked.append("POST")
        self._say(self.first.pop(0) if self.first else 201)

    def _say(self, status: int) -> None:
        body = json.dumps({"items": []}) if status < 300 else FORBIDDEN if status == 403 else "upstream is away"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, type[Server]]]:
    class Mine(Server):
        first, asked, busy = [], [], []

    monkeypatch.setattr(patience, "FIRST", 0.01)
    monkeypatch.setattr(patience, "LONGEST", 0.01)
    front = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=front.serve_forever, daemon=True).start()
    yield Client.at(str(kubeconfig(tmp_path, front.server_port)), "sparkloom"), Mine
    front.shutdown()
    front.server_close()


def kubeconfig(folder: Path, port: int) -> Path:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "it", "user": {"token": "none"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(content))
    return folder / "kubeconfig"


@pytest.mark.parametrize("first", [[403], [403, 403, 503], [500, 429, 502]])
def test_what_passes_is_asked_again(server: tuple[Client, type[Server]], first: list[int]) -> None:
    reached, api = server
    api.first.extend(first)
    assert reached.pods({}) == [] and len(api.asked) == len(first) + 1


@pytest.mark.parametrize("status", [400, 401, 404, 409])
def test_what_stays_is_not(server: tuple[Client, type[Server]], status: int) -> None:
    reached, api = server
    api.first.append(status)
    with pytest.raises(ApiException):
        reached.pods({})
    assert len(api.asked) == 1


@pytest.mark.parametrize(("status", "times"), [(403, 2), (503, 2), (500, 1), (502, 1)])
def test_what_may_have_been_done_is_not_done_twice(
    server: tuple[Client, type[Server]], status: int, times: int
) -> None:
    reached, api = server
    api.first.append(status)
    body = {"metadata": {"name": "x"}}
    if times == 1:
        with pytest.raises(ApiException):
            reached.core.create_namespaced_config_map("sparkloom", body)
    else:
        reached.core.create_namespaced_config_map("sparkloom", body)
    assert api.asked == ["POST"] * times


def test_patience_ends(server: tuple[Client, type[Server]], monkeypatch: pytest.MonkeyPatch) -> None:
    reached, api = server
    api.first.extend([403] * 1000)
    with pytest.raises(ApiException):
        patience.patiently(lambda: reached.core.api_client.rest_client.GET(f"{_host(reached)}/"), seconds=2)
    assert 1 < len(api.asked) < 500


def test_a_server_that_starts_is_waited_for_and_a_stranger_s_kubeconfig_is_not(
    server: tuple[Client, type[Server]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the old code twelve seconds of 403 were the kubeconfig's fault, whatever the server was at."""
    reached, api = server
    reached = same(reached, tmp_path, seconds=0.0)
    api.ready = 403
    api.first.extend([403] * 4)
    assert reached.pods({}) == [] and len(api.asked) == 5
    monkeypatch.setattr(patience, "STARTS", 0.1)
    api.first.extend([403] * 1000)
    with pytest.raises(ApiException) as late:
        reached.pods({})
    assert "has not read its own rules" in patience.trouble(late.value) and "kubeconfig" not in str(late.value)
    api.ready = 200
    with pytest.raises(ApiException) as refused:
        reached.pods({})
    assert "must be an administrator's" in patience.trouble(refused.value)


def test_a_server_that_says_nothing_is_left_after_the_seconds_that_were_asked_for(
    server: tuple[Client, type[Server]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half seconds and 8.0 were no bound at all: the library takes whole numbers."""
    reached = same(server[0], tmp_path, seconds=0.0)
    began = time.monotonic()
    with pytest.raises(HTTPError):
        reached.api("/silent", {}, "application/json", 0.4)
    monkeypatch.setattr(patience, "ANSWERS", 0.4)
    with pytest.raises(HTTPError):
        Api(reached)._there("/silent")
    assert time.monotonic() - began < 2.5
    assert list(reached.stream("silent", follow=True)) == ['{"items": []}'], "a log may be silent for longer"


def test_a_run_under_way_asks_a_busy_server_again_and_says_so(
    server: tuple[Client, type[Server]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer that took longer than 30 s ended the start of a group, on a machine that wrote weights to its disk."""
    reached, api = server
    monkeypatch.setattr(patience, "ANSWERS", 0.3)
    monkeypatch.setattr(patience, "SECONDS", 0.2)
    said: list[str] = []
    runs = same(reached, tmp_path, seconds=60.0, say=said.append)
    api.busy.extend([1, 1])
    assert runs.pods({}) == []
    (told,) = said
    assert "Read timed out" in told and told.endswith("(asked again for 60 s)")


def test_a_run_under_way_waits_no_less_for_a_server_that_starts_and_no_longer_for_a_refusal(
    server: tuple[Client, type[Server]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red before: a server that came back late was given up at its first 403; a refusal was asked about for 180 s."""
    reached, api = server
    monkeypatch.setattr(patience, "STARTS", 0.0)
    runs = same(reached, tmp_path, seconds=60.0)
    api.ready = 403
    api.first.extend([403] * 4)
    assert runs.pods({}) == [] and len(api.asked) == 5
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    api.ready = 200
    api.first.extend([403] * 1000)
    with pytest.raises(ApiException):
        runs.pods({})


def test_one_who_has_no_patience_is_answered_at_once(server: tuple[Client, type[Server]]) -> None:
    reached, api = server
    reached.core.api_client.configuration.retries = False
    api.first.append(403)
    with pytest.raises(ApiException):
        reached.pods({})


def test_a_refused_connection_may_be_tried_again_whatever_was_asked_and_a_lost_one_only_for_a_question() -> None:
    refused = MaxRetryError(None, "/", NewConnectionError(None, "Connection refused"))  # type: ignore[arg-type]
    assert patience.passing(refused, "POST") and patience.passing(ProtocolError("reset"), "GET")
    assert patience.passing(ProtocolError("reset"), "PATCH") and not patience.passing(ProtocolError("reset"), "POST")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiException(status=401, reason="Unauthorized"), "credentials are not this cluster's; playbooks/cluster.yml"),
        (ApiException(status=500, reason="Internal"), "answers 500 Internal: no more is said"),
        (MaxRetryError(None, "/", NewConnectionError(None, "refused")), "refused; is its first server up"),  # type: ignore[arg-type]
    ],
)
def test_what_stays_is_one_line_with_its_own_cure(error: Exception, told: str) -> None:
    def work() -> ansible.Data:
        raise error

    result = ansible.guarded(work)
    assert result["failed"] and told in result["msg"] and "\n" not in result["msg"] and len(result["msg"]) < 300


def test_an_error_that_is_not_the_api_s_stays_a_bug() -> None:
    with pytest.raises(ZeroDivisionError):
        ansible.guarded(lambda: {"x": 1 / 0})


def same(reached: Client, folder: Path, **patient: Any) -> Client:
    port = int(_host(reached).rpartition(":")[2])
    return Client.at(str(kubeconfig(folder, port)), "sparkloom", **patient)


def _host(reached: Client) -> str:
    return str(reached.core.api_client.configuration.host)
