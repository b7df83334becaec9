"""A certificate for the endpoint: the user's own, or one signed by a small authority that is made once per site.

The authority's key never leaves this machine. Clients trust `ca.pem`; the certificate is renewed long before it ends.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sparkloom.base.errors import InputError
from sparkloom.render import keys

AUTHORITY_DAYS, CERTIFICATE_DAYS, RENEW_DAYS = 3650, 397, 60  # browsers and phones refuse more than 398 days
SKEW = timedelta(hours=1)  # a client whose clock is a little late
NOBODY = "sparkloom.invalid"


@dataclass(frozen=True, slots=True)
class Pair:
    """What the endpoint shows, as PEM; `trust` is the file that a client needs, empty for a known authority."""

    certificate: str
    key: str
    until: datetime
    made: bool
    trust: str = ""


def _now() -> datetime:
    return datetime.now(UTC)


def private(key: ec.EllipticCurvePrivateKey) -> str:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def public(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - SKEW)
        .not_valid_after(_now() + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _within(names: Iterable[str]) -> list[x509.GeneralName]:
    """The host names that the authority may vouch for: who takes its key cannot be another site to its clients.

    Constraints on addresses would say more, but BoringSSL (Claude Code, opencode, gRPC) refuses every certificate under
    them. Without any host name all of them would be allowed, so one that cannot exist stands there.
    """
    return [x509.DNSName(name.removeprefix("*.")) for name in (NOBODY, *names) if not _is_address(name)]


def _allows(authority: x509.Certificate, names: Iterable[str]) -> bool:
    """One of before there were constraints is kept: its clients would have to trust another."""
    try:
        have = authority.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    except x509.ExtensionNotFound:
        return True
    return set(_within(names)) <= set(have) and all(isinstance(name, x509.DNSName) for name in have)


def _authority(
    folder: Path, site: str, names: list[str], *, dry: bool
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Made once. Made again with the same key where it ends, lacks a name, or constrains addresses.

    Clients that trust the one before go on: for them the key and the name are what they know.
    """
    certificate, key = folder / "ca.pem", folder / "ca.key"
    signer = ec.generate_private_key(ec.SECP256R1())
    if certificate.is_file() and key.is_file():
        keys.guarded(key)
        kept = x509.load_pem_x509_certificate(certificate.read_bytes())
        signer = serialization.load_pem_private_key(key.read_bytes(), None)  # type: ignore[assignment]
        if kept.not_valid_after_utc > _now() + timedelta(days=CERTIFICATE_DAYS) and _allows(kept, names):
            return kept, signer
    name = named(f"Sparkloom {site}")
    made = (
        _builder(name, name, signer.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.NameConstraints(_within(names), None), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .sign(signer, hashes.SHA256())
    )
    if not dry:
        keys.write(key, private(signer))
        keys.write(certificate, public(made))
    return made, signer


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _alternative(name: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_address(name)) if _is_address(name) else x509.DNSName(name)


def covers(certificate: x509.Certificate, names: Iterable[str]) -> bool:
    try:
        have = set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return False
    return {_alternative(name) for name in names} <= have


def own(folder: Path, site: str, names: list[str], *, dry: bool = False) -> Pair:
    """Signed by the site's own authority; the one that is kept, while it lasts and names everything."""
    authority, signer = _authority(folder, site, names, dry=dry)
    place, secret = folder / "tls.pem", folder / "tls.key"
    trust = str(folder / "ca.pem")
    if place.is_file() and secret.is_file():
        keys.guarded(secret)
        kept = x509.load_pem_x509_certificate(place.read_bytes())
        lasts = kept.not_valid_after_utc > _now() + timedelta(days=RENEW_DAYS)
        ours = kept.issuer == authority.subject and _signed(kept, authority)
        if lasts and ours and covers(kept, names):
            return Pair(place.read_text(), secret.read_text(), kept.not_valid_after_utc, False, trust)
    fresh = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    made = (
        _builder(named(f"Sparkloom {site}, its endpoint"), authority.subject, fresh.public_key(), CERTIFICATE_DAYS)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(signer, hashes.SHA256())
    )
    if not dry:
        keys.write(secret, private(fresh))
        keys.write(place, public(made))
    return Pair(public(made), private(fresh), made.not_valid_after_utc, True, trust)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def given(certificate: Path, key: Path, names: list[str]) -> Pair:
    """The user's own files; refused when they do not belong together, do not name the endpoint, or have ended."""
    for path in (certificate, key):
        if not path.is_file():
            message = "no such file; gateway_certificate and gateway_certificate_key name them"
            raise InputError.single(str(path), message)
    keys.guarded(key)
    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise InputError.single(str(certificate), f"not a PEM certificate with a plain PEM key: {error}") from None
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != read.public_key().public_bytes(*form):
        raise InputError.single(str(key), f"not the key of {certificate} (gateway_certificate_key)")
    if read.not_valid_after_utc < _now():
        raise InputError.single(str(certificate), f"ended on {read.not_valid_after_utc:%Y-%m-%d} (gateway_certificate)")
    if names and not covers(read, names):
        raise InputError.single(str(certificate), f"does not name {', '.join(names)} (gateway_names)")
    return Pair(certificate.read_text(), key.read_text(), read.not_valid_after_utc, False)
