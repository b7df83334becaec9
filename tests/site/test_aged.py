"""Weeks later: certificates that ended, and clocks that they do not fit. Real ones, on loopback, judged by OpenSSL."""

from __future__ import annotations

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from urllib3.exceptions import HTTPError

from sparkloom.base.errors import InputError
from sparkloom.site import patience
from sparkloom.site.client import Client

NOW = datetime.now(UTC)
GOOD, ENDED, NOT_YET = (-1, 365), (-700, -335), (35, 400)  # days from now
Days = tuple[int, int]


class Authority:
    """One of K3s': both sides trust it, for ten years."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "k3s-ca")])
        self.own = self._signed(self.name, self.key, (-700, 3000), authority=True)

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, days: Days, *, authority: bool = False
    ) -> x509.Certificate:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        begin, end = (NOW + timedelta(days=at) for at in days)
        made = x509.CertificateBuilder(self.name, name, key.public_key(), x509.random_serial_number(), begin, end)
        made = made.add_extension(x509.BasicConstraints(authority, None), True).add_extension(names, False)
        return made.sign(self.key, hashes.SHA256())

    def pair(self, name: str, days: Days) -> tuple[str, str]:
        """A certificate for that long, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, days)
        plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return pem(made), key.private_bytes(*plain).decode()


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"items": []}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


Begin = Callable[[Days, Days], Path]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """An API server and a kubeconfig, whose certificates are good from one day to another."""
    with _servers(tmp_path) as start:
        yield start


@contextmanager
def _servers(folder: Path) -> Iterator[Begin]:
    running: list[ThreadingHTTPServer] = []

    def start(server: Days, owner: Days) -> Path:
        authority = Authority()
        (folder / "server.pem").write_text("".join(authority.pair("k3s", server)))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "server.pem")
        front = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        front.socket = tls.wrap_socket(front.socket, server_side=True)
        running.append(front)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        certificate, key = authority.pair("system:admin", owner)
        user = {"client-certificate-data": _data(certificate + pem(authority.own)), "client-key-data": _data(key)}
        to = {
            "server": f"https://127.0.0.1:{front.server_port}",
            "certificate-authority-data": _data(pem(authority.own)),
        }
        context = {"cluster": "c", "user": "u"}
        made = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": to}],
            "users": [{"name": "u", "user": user}], "contexts": [{"name": "c", "context": context}],
        }  # fmt: skip
        file = folder / "kubeconfig"
        file.write_text(json.dumps(made))
        return file

    yield start
    for front in running:
        front.shutdown()
        front.server_close()


def _data(text: str) -> str:
    return b64encode(text.encode()).decode()


def test_certificates_that_are_good_are_no_matter(begin: Begin) -> None:
    assert Client.at(str(begin(GOOD, GOOD)), "sparkloom").pods({}) == []


def test_a_kubeconfig_whose_certificate_ended_is_told_with_its_cure(begin: Begin) -> None:
    """A server answers 401 to it (K3s itself does), and the kubeconfig was called another cluster's."""
    kubeconfig = begin(GOOD, ENDED)
    with pytest.raises(InputError) as refused:
        Client.at(str(kubeconfig), "sparkloom")
    (problem,) = refused.value.problems
    ended = (
        f"its certificate ended on {NOW + timedelta(days=ENDED[1]):%Y-%m-%d}, and it is {datetime.now(UTC):%Y-%m-%d} "
    )
    assert problem.file == str(kubeconfig) and problem.message.startswith(ended)
    assert "playbooks/cluster.yml writes it anew" in problem.message and "restart k3s" not in problem.message


@pytest.mark.parametrize(("days", "words"), [(ENDED, "has expired"), (NOT_YET, "not yet valid")])
def test_a_server_whose_certificate_no_clock_here_fits_is_told_as_that(begin: Begin, days: Days, words: str) -> None:
    """It was asked whether the first server is up, which it is."""
    reached = Client.at(str(begin(days, GOOD)), "sparkloom")
    reached.core.api_client.configuration.retries = False
    with pytest.raises(HTTPError) as refused:
        reached.pods({})
    message = patience.trouble(refused.value)
    assert f"certificate {words}" in message or f"certificate is {words}" in message, message
    assert f"it is {datetime.now(UTC):%Y-%m-%d}" in message and "timedatectl" in message
    assert "restart k3s" in message and "server up" not in message
