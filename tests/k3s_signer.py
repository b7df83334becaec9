"""A cluster's signer: what the first server of a K3s answers to a request for a certificate."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

SIGNER = ec.generate_private_key(ec.SECP256R1())
AUTHORITY = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "k3s-client-ca")])


def certificate(
    name: x509.Name, key: Any, begun: datetime, days: float, issuer: x509.Name = AUTHORITY, signer: Any = SIGNER
) -> str:
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(1)
        .not_valid_before(begun)
        .not_valid_after(begun + timedelta(days=days))
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def authority() -> str:
    return certificate(AUTHORITY, SIGNER.public_key(), datetime.now(UTC), 365)


def signing(
    ago: float = 0, seen: list[Any] | None = None, change: Callable[[str], str] = str
) -> Callable[[str, bytes | None], dict[str, Any]]:
    """In place of the first server; `ago`: days since it signed, `seen`: what reached it, `change`: of its answer."""

    def execute(line: str, data: bytes | None) -> dict[str, Any]:
        objects = json.loads(data or b"")["items"]
        if seen is not None:
            seen.extend([line, *objects])
        asked = x509.load_pem_x509_csr(base64.b64decode(objects[-1]["spec"]["request"]))
        mine = certificate(asked.subject, asked.public_key(), datetime.now(UTC) - timedelta(days=ago), 30)
        return {"rc": 0, "stdout": change(mine + authority()), "stderr": "approved"}

    return execute
