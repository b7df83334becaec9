"""Certificates: what a real TLS client accepts, what is renewed, what is refused."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import timedelta
from pathlib import Path

import pytest

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
