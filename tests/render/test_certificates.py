"""Certificates: what a real TLS client accepts, what is renewed, what is refused."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sparkloom.base.errors import InputError
from sparkloom.render import certificates

NAMES = ["spark.example", "127.0.0.1"]


def handshake(folder: Path, name: str, trust: Path) -> None:
    """A server with the pair, a client that trusts `trust` and expects `name`."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    here, there = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        ssl.create_default_context(cafile=str(trust)).wrap_socket(here, server_hostname=name).close()
    finally:
        here.close()
        thread.join(10)


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_trusts_the_authority_accepts_every_name(tmp_path: Path, name: str) -> None:
    pair = certificates.own(tmp_path, "home", NAMES)
    handshake(tmp_path, name, Path(pair.trust))


def test_another_name_and_another_authority_are_refused(tmp_path: Path) -> None:
    certificates.own(tmp_path / "one", "home", NAMES)
    certificates.own(tmp_path / "two", "home", NAMES)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"[Hh]ostname mismatch"):
        handshake(tmp_path / "one", "elsewhere.example", tmp_path / "one/ca.pem")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path / "one", NAMES[0], tmp_path / "two/ca.pem")


def test_kept_until_shortly_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = certificates.own(tmp_path, "home", NAMES)
    assert first.made and not certificates.own(tmp_path, "home", NAMES).made
    trusted = (tmp_path / "ca.pem").read_text()
    late = first.until - timedelta(days=certificates.RENEW_DAYS - 1)
    monkeypatch.setattr(certificates, "_now", lambda: late)
    renewed = certificates.own(tmp_path, "home", NAMES)
    assert renewed.made and renewed.until > first.until
    assert (tmp_path / "ca.pem").read_text() == trusted  # clients need not trust anything new


def signed(folder: Path, name: str) -> None:
    """What a thief of the authority's key makes for a place that is not ours."""
    certificates.own(folder, "home", NAMES)
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    own = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "some body")]))
        .issuer_name(authority.subject)
        .public_key(own.public_key())
        .serial_number(1)
        .not_valid_before(authority.not_valid_before_utc)
        .not_valid_after(authority.not_valid_before_utc + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([certificates._alternative(name)]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "tls.key").write_bytes(own.private_bytes(*form))


@pytest.mark.parametrize("name", ["bank.example.com", "spark.example.com"])
def test_the_authority_vouches_for_its_own_names_only(tmp_path: Path, name: str) -> None:
    """Whoever took its key could be any site to the clients that trust it."""
    signed(tmp_path, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        handshake(tmp_path, name, tmp_path / "ca.pem")


def boringssl(folder: Path) -> str:
    """What BoringSSL says to the pair, as the client of gRPC; empty where it shook hands."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    server.set_alpn_protocols(["h2"])
    shaken: list[bool] = []

    def serve(listening: socket.socket) -> None:
        try:
            with server.wrap_socket(listening.accept()[0], server_side=True):
                shaken.append(True)
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        trust = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with grpc.secure_channel(address, trust) as channel, pytest.raises(grpc.RpcError) as error:
            channel.unary_unary("/nobody/asks")(b"", timeout=30)
        thread.join(30)
    return "" if shaken else str(error.value.details())  # type: ignore[attr-defined]


def test_boringssl_accepts_an_address(tmp_path: Path) -> None:
    """Claude Code and opencode said UNSUPPORTED_CONSTRAINT_TYPE to every certificate of ours (2026-11-25)."""
    certificates.own(tmp_path, "home", NAMES)
    assert boringssl(tmp_path) == ""


def test_an_authority_that_constrains_addresses_is_made_again_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every site has it since 2026-11: nobody types `rm`, and who trusts the old `ca.pem` still connects."""
    with monkeypatch.context() as patch:
        network = x509.IPAddress(ipaddress.ip_network("127.0.0.0/8"))
        hosts = [x509.DNSName(certificates.NOBODY), x509.DNSName("spark.example")]
        patch.setattr(certificates, "_within", lambda names: [*hosts, network])
        patch.setattr(certificates, "_allows", lambda authority, names: True)
        certificates.own(tmp_path, "home", NAMES)
    (tmp_path / "old.pem").write_bytes((tmp_path / "ca.pem").read_bytes())
    assert "unsupported name constraint type" in boringssl(tmp_path)
    assert not certificates.own(tmp_path, "home", NAMES).made  # the endpoint's own certificate stays
    assert boringssl(tmp_path) == ""
    for trust in ("old.pem", "ca.pem"):
        for name in NAMES:
            handshake(tmp_path, name, tmp_path / trust)
    before = (tmp_path / "ca.pem").read_bytes()
    certificates.own(tmp_path, "home", NAMES)
    assert (tmp_path / "ca.pem").read_bytes() == before


def test_a_name_outside_makes_the_authority_again_and_an_older_one_without_limits_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates.own(tmp_path, "home", NAMES)
    before, key = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "ca.key").read_bytes()
    certificates.own(tmp_path, "home", [*NAMES, "127.0.0.9"])
    assert (tmp_path / "ca.pem").read_bytes() == before
    certificates.own(tmp_path, "home", [*NAMES, "other.example"])
    assert (tmp_path / "ca.pem").read_bytes() != before and (tmp_path / "ca.key").read_bytes() == key
    handshake(tmp_path, "other.example", tmp_path / "ca.pem")
    with monkeypatch.context() as patch:
        patch.setattr(x509.CertificateBuilder, "add_extension", _without_limits(x509.CertificateBuilder.add_extension))
        certificates.own(tmp_path / "old", "home", NAMES)
    before = (tmp_path / "old" / "ca.pem").read_bytes()
    certificates.own(tmp_path / "old", "home", [*NAMES, "other.example"])
    assert (tmp_path / "old" / "ca.pem").read_bytes() == before


def _without_limits(add: Callable[..., Any]) -> Callable[..., Any]:
    def only(builder: Any, extension: Any, critical: bool) -> Any:
        return builder if isinstance(extension, x509.NameConstraints) else add(builder, extension, critical)

    return only


def test_a_new_name_renews_and_a_lost_authority_too(tmp_path: Path) -> None:
    certificates.own(tmp_path, "home", NAMES)
    assert certificates.own(tmp_path, "home", [*NAMES, "10.0.0.7"]).made
    (tmp_path / "ca.key").unlink()
    assert certificates.own(tmp_path, "home", [*NAMES, "10.0.0.7"]).made


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    certificates.own(tmp_path, "home", NAMES)
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077} == set()
    (tmp_path / "tls.key").chmod(0o640)
    with pytest.raises(InputError, match="mode 0640"):
        certificates.own(tmp_path, "home", NAMES)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert certificates.own(tmp_path / "site", "home", NAMES, dry=True).made
    assert not (tmp_path / "site").exists()


def test_own_files_are_taken_when_they_fit(tmp_path: Path) -> None:
    certificates.own(tmp_path / "a", "home", NAMES)
    certificates.own(tmp_path / "b", "home", NAMES)
    good = (tmp_path / "a/tls.pem", tmp_path / "a/tls.key")
    assert certificates.given(*good, ["spark.example"]).trust == ""
    with pytest.raises(InputError, match="not the key of"):
        certificates.given(good[0], tmp_path / "b/tls.key", [])
    with pytest.raises(InputError, match=r"does not name other.example"):
        certificates.given(*good, ["other.example"])
    with pytest.raises(InputError, match="no such file"):
        certificates.given(tmp_path / "none.pem", good[1], [])
    broken = tmp_path / "broken.pem"
    broken.write_text("not PEM")
    with pytest.raises(InputError, match="PEM certificate"):
        certificates.given(broken, good[1], [])


def test_an_ended_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = certificates.own(tmp_path, "home", NAMES)
    monkeypatch.setattr(certificates, "_now", lambda: pair.until + timedelta(days=1))
    with pytest.raises(InputError, match="ended on"):
        certificates.given(tmp_path / "tls.pem", tmp_path / "tls.key", [])
