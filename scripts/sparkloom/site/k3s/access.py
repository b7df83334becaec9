"""The administrator's access to a K3s of ours: a certificate of days, whose key is made here and never leaves.

The first server signs it by K3s' own administrator's access, which stays there.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sparkloom.base.errors import InputError
from sparkloom.onnode.now.labels import PART_OF
from sparkloom.render import certificates, keys, template
from sparkloom.render.k3s import paths

ROLE = "sparkloom-administrator"
PATH = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ROLE}"
Execute = Callable[[str, bytes | None], Mapping[str, Any]]
LIFE = timedelta(days=30)  # renewed in the last third
END = "-----END CERTIFICATE-----\n"
# What it may do and its request come on standard input; the certificate and the cluster's authority go back.
SIGN = f"""set -e
kubectl() {{ {paths.BINARY} kubectl --kubeconfig={paths.KUBECONFIG} "$@"; }}
kubectl apply -f - >&2
kubectl certificate approve NAME >&2
kubectl wait csr/NAME --for=jsonpath={{.status.certificate}} --timeout=60s >&2
kubectl get csr/NAME -o jsonpath={{.status.certificate}} | base64 -d
cat {paths.AUTHORITY}"""


def user(person: str) -> str:
    """As the cluster's audit log has it, in the letters that a name of an object may have."""
    return f"sparkloom:{re.sub(r'[^a-zA-Z0-9.@_-]', '-', person)}"[:64]


def rules() -> Any:
    return _objects("", "", b"")[0]["rules"]


def is_kept(target: str, name: str) -> bool:
    """Nothing is somebody else's too."""
    try:
        text = Path(target).read_text()
        return not text.strip() or [entry["name"] for entry in yaml.safe_load(text)["contexts"]] == [name]
    except (OSError, yaml.YAMLError, TypeError, KeyError):
        return False


def lasts(target: str, who: str, api: str) -> bool:
    """Whether it is this person's, leads to that address, and has more than a third of its life left."""
    if not (certificate := _certificate(target)) or Path(target).stat().st_mode & keys.OURS_ONLY:
        return False
    begun, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    server = yaml.safe_load(Path(target).read_text())["clusters"][0]["cluster"].get("server")
    mine = (certificate.subject, server) == (certificates.named(who), api)
    return mine and end - datetime.now(UTC) > (end - begun) / 3


def renew(target: str, who: str, api: str, name: str, execute: Execute) -> None:
    """Written where the inventory says, 0600, and never over somebody else's; `execute` asks the first server."""
    if Path(target).exists() and not is_kept(target, name):
        found, expected = "holds another cluster's access and is left alone", f"expected a context '{name}'"
        cure = "name another file in cluster.kubernetes.kubeconfig (cluster.yml), or remove it"
        raise InputError.single(target, f"{found}; {cure} ({expected})", rule="foreign-kubeconfig")
    key = ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(certificates.named(who)).sign(key, hashes.SHA256())
    pem = asked.public_bytes(serialization.Encoding.PEM)
    csr = f"sparkloom-{hashlib.sha256(pem).hexdigest()[:16]}"
    listed = {"apiVersion": "v1", "kind": "List", "items": _objects(who, csr, pem)}
    told = execute(SIGN.replace("NAME", csr), json.dumps(listed).encode())
    certificate, _, authority = str(told["stdout"]).partition(END)
    try:
        mine = x509.load_pem_x509_certificate((certificate + END).encode())
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authority)
        if mine.public_key() != key.public_key():
            raise ValueError
    except (ValueError, ssl.SSLError):
        said = " ".join(str(told["stderr"]).split())[-500:]
        message = f"expected a certificate of the key that was made here, and the cluster's authority; it said: {said}"
        raise InputError.single("the first server", message, rule="machine-answer") from None
    parts = {"authority": authority, "certificate": certificates.public(mine), "key": certificates.private(key)}
    encoded = {part: b64encode(text.encode()).decode() for part, text in parts.items()}
    made = template.one("k3s/kubeconfig", name=name, server=api, **encoded)
    keys.write(Path(target), yaml.safe_dump(made, sort_keys=False))


def _objects(who: str, name: str, request: bytes) -> list[dict[str, Any]]:
    seconds, asked = int(LIFE.total_seconds()), b64encode(request).decode()
    words = {"role": ROLE, "user": who, "name": name, "request": asked, "seconds": seconds, "labels": PART_OF}
    return template.objects("k3s/administrator", **words)


def _certificate(target: str) -> x509.Certificate | None:
    """Nothing of a kubeconfig that has none, or another way in."""
    try:
        held = yaml.safe_load(Path(target).read_text())["users"][0]["user"]["client-certificate-data"]
        return x509.load_pem_x509_certificate(b64decode(held))
    except (OSError, yaml.YAMLError, LookupError, TypeError, ValueError):
        return None
