"""The cluster's certificates, made with openssl where K3s keeps its own."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

DATA = Path("/var/lib/rancher/k3s")
TLS = DATA / "server/tls"
CA, CA_KEY = TLS / "server-ca.crt", TLS / "server-ca.key"
SERVER, SERVER_KEY = TLS / "serving-kube-apiserver.crt", TLS / "serving-kube-apiserver.key"
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def provide(names: list[str]) -> None:
    """A CA once, and a serving certificate for these names at every start."""
    TLS.mkdir(parents=True, exist_ok=True)
    if not CA.exists():
        openssl("req", "-x509", *EC, "-subj", "/CN=k3s-server-ca", "-days", "3650", "-keyout", CA_KEY, "-out", CA)
    request, extra = TLS / "server.csr", TLS / "server.ext"
    kinds = [f"{'IP' if name.replace('.', '').isdigit() else 'DNS'}:{name}" for name in dict.fromkeys(names)]
    extra.write_text(f"subjectAltName={','.join(kinds)}\n")
    openssl("req", *EC, "-subj", "/CN=kube-apiserver", "-keyout", SERVER_KEY, "-out", request)
    signed = ["-CA", CA, "-CAkey", CA_KEY, "-CAcreateserial", "-days", "365", "-extfile", extra]
    openssl("x509", "-req", "-in", request, *signed, "-out", SERVER)


def fingerprint(ca: bytes) -> str:
    """What stands in a full token: the hash of the certificate file's bytes."""
    return hashlib.sha256(ca).hexdigest()
