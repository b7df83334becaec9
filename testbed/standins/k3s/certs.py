"""The cluster's certificates, made with openssl where K3s keeps its own."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

DATA = Path("/var/lib/rancher/k3s")
TLS = DATA / "server/tls"
CA, CA_KEY = TLS / "server-ca.crt", TLS / "server-ca.key"
SERVER, SERVER_KEY = TLS / "serving-kube-apiserver.crt", TLS / "serving-kube-apiserver.key"
CLIENT_CA, CLIENT_CA_KEY = TLS / "client-ca.crt", TLS / "client-ca.key"
ADMIN, ADMIN_KEY = TLS / "client-admin.crt", TLS / "client-admin.key"
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def provide(names: list[str]) -> None:
    """Authorities and the administrator's certificate once; one to serve these names at every start."""
    TLS.mkdir(parents=True, exist_ok=True)
    for authority, key in ((CA, CA_KEY), (CLIENT_CA, CLIENT_CA_KEY)):
        if not authority.exists():
            subject = f"/CN=k3s-{authority.stem}"
            openssl("req", "-x509", *EC, "-subj", subject, "-days", "3650", "-keyout", key, "-out", authority)
    kinds = [f"{'IP' if name.replace('.', '').isdigit() else 'DNS'}:{name}" for name in dict.fromkeys(names)]
    signed("/CN=kube-apiserver", f"subjectAltName={','.join(kinds)}", (SERVER, SERVER_KEY), (CA, CA_KEY))
    if not ADMIN.exists():
        who = "/O=system:masters/CN=system:admin"
        signed(who, "extendedKeyUsage=clientAuth", (ADMIN, ADMIN_KEY), (CLIENT_CA, CLIENT_CA_KEY))


def signed(subject: str, extension: str, made: tuple[Path, Path], authority: tuple[Path, Path]) -> None:
    request, extra = made[0].with_suffix(".csr"), made[0].with_suffix(".ext")
    extra.write_text(f"{extension}\n")
    openssl("req", *EC, "-subj", subject, "-keyout", made[1], "-out", request)
    by = ["-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial", "-days", "365", "-extfile", extra]
    openssl("x509", "-req", "-in", request, *by, "-out", made[0])


def admitted(request: bytes, seconds: int) -> bytes:
    """A client's certificate for a request that was approved."""
    with tempfile.TemporaryDirectory() as folder:
        asked, made, extra = (Path(folder) / name for name in ("asked", "made", "extra"))
        asked.write_bytes(request)
        extra.write_text("keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n")
        by = ["-CA", CLIENT_CA, "-CAkey", CLIENT_CA_KEY, "-CAserial", Path(folder) / "serial", "-CAcreateserial"]
        days = ["-days", str(seconds // 86400)]
        openssl("x509", "-req", "-in", asked, *by, *days, "-extfile", extra, "-out", made)
        return made.read_bytes()


def fingerprint(ca: bytes) -> str:
    """What stands in a full token: the hash of the certificate file's bytes."""
    return hashlib.sha256(ca).hexdigest()
