"""The router on a cluster that somebody has: the real Traefik leads there, by the Ingress that a site applies."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render import certificates
from sparkloom.render.manifests import gateway
from sparkloom.site import endpoint
from testbed.make import traefik
from testbed.standins.pacing.process import Engine, free_ports
from tests.render.router.running import ALICE, CHAT, Router, asked, bearer, running
from tests.until import until

pytestmark = pytest.mark.skipif(
    not traefik.archive().exists(), reason="no Traefik is built here: `python -m testbed rack build` makes one"
)
NAME = "spark.example.org"


def program(folder: Path) -> Path:
    """Traefik out of its image."""
    with tarfile.open(traefik.archive()) as image:
        for entry in image.getmembers():
            held = image.extractfile(entry)
            if held is None or not tarfile.is_tarfile(layer := io.BytesIO(held.read())):
                continue
            with tarfile.open(fileobj=layer) as files:
                files.extract("traefik", folder, filter="data")
    return folder / "traefik"


def led(pair: certificates.Pair, folder: Path, port: int) -> dict[str, Any]:
    """The Ingress as Traefik's file provider reads it: the rules that its own provider makes of one; the router is on
    loopback."""
    spec = gateway.ingress("sparkloom", "traefik", [NAME], {}, page=False)["spec"]
    (rule,) = spec["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "router", "port": {"name": "http"}}
    (folder / "tls.crt").write_text(pair.certificate)
    (folder / "tls.key").write_text(pair.key)
    match = f"Host(`{rule['host']}`) && PathPrefix(`{path['path']}`)"
    router = {"entryPoints": ["websecure"], "rule": match, "service": "router", "tls": {}}
    services = {"router": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{port}"}]}}}
    tls = {"certificates": [{"certFile": str(folder / "tls.crt"), "keyFile": str(folder / "tls.key")}]}
    return {"http": {"routers": {"router": router}, "services": services}, "tls": tls}


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Router, int, str]]:
    folder = tmp_path_factory.mktemp("ingress")
    pair = certificates.own(folder, "test", [NAME])
    engine, (port,) = Engine("alpha", "ttft=0.05", "rate=60"), free_ports(1)
    with running(folder, {"alpha": engine}, keys=[Key(name="alice", hash=hashed(ALICE))]) as router:
        (folder / "routes.yml").write_text(yaml.safe_dump(led(pair, folder, router.terms.port)))
        words = [
            program(folder),
            f"--entryPoints.websecure.address=127.0.0.1:{port}",
            f"--providers.file.filename={folder / 'routes.yml'}",
            "--global.checknewversion=false",
            "--global.sendanonymoususage=false",
        ]
        with (folder / "traefik.log").open("w") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            until(lambda: status(port, pair.trust, "GET", "/v1/models") == 200, 60)
            yield router, port, pair.trust
        finally:
            process.terminate()
            process.wait(10)
            engine.down()


def opened(port: int, trust: str) -> http.client.HTTPSConnection:
    return endpoint.Endpoint("127.0.0.1", port, NAME, trust, 30).connect()


def status(port: int, trust: str, method: str, path: str, key: str = ALICE, body: str | None = None) -> int:
    try:
        connection = opened(port, trust)
        connection.request(method, path, body, bearer(key))
        return connection.getresponse().status
    except OSError:
        return 0


def streamed(port: int, trust: str) -> bytes:
    """A whole stream. On a busy machine Traefik itself may cut one in its first milliseconds, when the answer begins
    before it saw the request's end (golang/go#40747, traefik/traefik#11767): whoever asks again is answered."""
    for _ in range(5):
        connection = opened(port, trust)
        connection.request("POST", CHAT, json.dumps({**asked("alpha", 30), "stream": True}), bearer(ALICE))
        answer = connection.getresponse()
        assert answer.status == 200
        with contextlib.suppress(http.client.IncompleteRead):
            return answer.read()
    raise AssertionError("each of five streams was cut")


def test_it_streams_and_keeps_everything_else_closed(through: tuple[Router, int, str]) -> None:
    _, port, trust = through
    assert b"[DONE]" in streamed(port, trust)
    question = json.dumps(asked("alpha", 1))
    assert status(port, trust, "POST", CHAT, "wrong", question) == 401
    for path in ("/health", "/metrics", "/v1", "/v1/..%2fhealth", "/v1/%2e%2e/metrics", "/stats/prometheus"):
        assert (path, status(port, trust, "GET", path)) in ((path, 400), (path, 404))
