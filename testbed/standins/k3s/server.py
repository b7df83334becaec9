"""The server's part: tokens, the administrator's kubeconfig, and the few answers of an API that the role asks for."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import certs
import node

SERVER = certs.DATA / "server"
OBJECTS = SERVER / "db/objects.json"
KUBECONFIG = Path("/etc/rancher/k3s/k3s.yaml")
NODE_PASSWORD = "/api/v1/namespaces/kube-system/secrets/{}.node-password.k3s"
LISTS = {"nodes": "NodeList", "leases": "LeaseList"}


class State:
    """Objects by path, kept over a restart as etcd keeps them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, Any] = json.loads(OBJECTS.read_text()) if OBJECTS.exists() else {}
        self.passwords: dict[str, str] = {}
        self.nodes = ""

    def put(self, path: str, data: dict[str, Any]) -> None:
        with self.lock:
            self.objects[path] = data
            OBJECTS.parent.mkdir(parents=True, exist_ok=True)
            scratch = OBJECTS.with_suffix(".new")
            scratch.write_text(json.dumps(self.objects))
            scratch.replace(OBJECTS)

    def delete(self, path: str) -> bool:
        with self.lock:
            return self.objects.pop(path, None) is not None

    def knows(self, name: str, password: str) -> bool:
        """A node's password is kept when its name comes first, and goes with the node (its Secret, in K3s)."""
        path = NODE_PASSWORD.format(name)
        if (known := self.get(path)) is None:
            self.put(path, {"hash": hashed(password)})
            return True
        return bool(known["hash"] == hashed(password))

    def get(self, path: str) -> dict[str, Any] | None:
        with self.lock:
            if path in self.objects:
                return dict(self.objects[path])
            kind = LISTS.get(path.rsplit("/", 1)[-1])
            found = [value for key, value in self.objects.items() if key.rsplit("/", 1)[0] == path]
            return {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": found} if kind else None


class Handler(BaseHTTPRequestHandler):
    state: State
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def allowed(self) -> bool:
        if self.connection.getpeercert():  # type: ignore[attr-defined]  # the administrator's, by the clients' authority
            return True
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return False
        user, _, password = base64.b64decode(value).decode().rpartition(":")
        if user.startswith("system:node:"):
            return secrets.compare_digest(password, self.certificate(user))
        # who knows the servers' passphrase may also join as an agent
        known = [self.state.passwords["server"], *([self.state.passwords["node"]] if user == "node" else [])]
        return any(secrets.compare_digest(password, each) for each in known)

    def certificate(self, user: str) -> str:
        return hashed(f"{self.state.nodes} {user}")

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/cacerts":
            self.reply(200, certs.CA.read_bytes(), "text/plain")
        elif path in ("/readyz", "/livez", "/healthz"):
            self.reply(200, b"ok", "text/plain")
        elif not self.allowed():
            self.reply(401, b'{"kind":"Status","code":401,"reason":"Unauthorized"}')
        elif path == "/v1-k3s/config":
            self.reply(200, b"{}")
        elif path == "/v1-k3s/serving-kubelet.crt":
            named = self.headers.get("k3s-Node-Name", ""), self.headers.get("k3s-Node-Password", "")
            known = self.state.knows(*named)
            self.reply(200 if known else 403, self.certificate(f"system:node:{named[0]}").encode() if known else b"{}")
        else:
            found = self.state.get(path)
            self.reply(200 if found else 404, json.dumps(found or {"kind": "Status", "code": 404}).encode())

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.allowed():
            self.reply(401, b'{"kind":"Status","code":401,"reason":"Unauthorized"}')
            return
        self.state.put(self.path, json.loads(body))
        self.reply(200, body)

    def do_DELETE(self) -> None:
        if not self.allowed():
            self.reply(401, b'{"kind":"Status","code":401,"reason":"Unauthorized"}')
            return
        gone = self.state.delete(self.path)
        self.state.delete(NODE_PASSWORD.format(self.path.rsplit("/", 1)[-1]))
        self.reply(200 if gone else 404, b"{}")


def hashed(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def passphrase(file: str | None, made: Path) -> str:
    if file:
        return node.password(Path(file).read_text().strip())
    return node.password(made.read_text().strip()) if made.exists() else secrets.token_hex(16)


def run(options: dict[str, Any]) -> int:
    if options.get("server"):
        return joined(options)
    if not options.get("cluster-init"):
        raise node.Fatal("the stand-in has no SQLite: cluster-init is expected of a first server")
    state = State()
    encryption(options)
    address = str(options["node-ip"][0])
    certs.provide([*options.get("tls-san", []), address, "127.0.0.1", "localhost", options["node-name"], "kubernetes"])
    state.passwords["server"] = passphrase(options.get("token-file"), SERVER / "token")
    agent = options.get("agent-token-file")
    state.passwords["node"] = passphrase(agent, SERVER / "agent-token") if agent else state.passwords["server"]
    state.nodes = node_secret()
    Handler.state = state
    served(int(options.get("https-listen-port", 6443)))
    ca = certs.CA.read_bytes()
    for name, user, role in (("token", "server", "server"), ("agent-token", "node", "node")):
        write(SERVER / name, f"K10{certs.fingerprint(ca)}::{user}:{state.passwords[role]}\n")
    (SERVER / "node-token").unlink(missing_ok=True)
    (SERVER / "node-token").symlink_to(SERVER / "token")
    write_kubeconfig(options, ca, certs.ADMIN.read_bytes(), certs.ADMIN_KEY.read_bytes())
    node.notify()
    return node.live(options, "127.0.0.1:6443", ca, ("server", state.passwords["server"]), control_plane=True)


def served(port: int) -> ThreadingHTTPServer:
    web = ThreadingHTTPServer(("0.0.0.0", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certs.SERVER, certs.SERVER_KEY)
    context.load_verify_locations(certs.CLIENT_CA)
    context.verify_mode = ssl.CERT_OPTIONAL
    web.socket = context.wrap_socket(web.socket, server_side=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    return web


def joined(options: dict[str, Any]) -> int:
    """A further server: its own API is left out, it lives as a member of the first one's."""
    address, ca, login = node.admitted(options, "server")
    OBJECTS.parent.mkdir(parents=True, exist_ok=True)
    encryption(options)
    write_kubeconfig(options, ca, b"", b"", address)
    node.notify()
    return node.live(options, address, ca, login, control_plane=True)


def encryption(options: dict[str, Any]) -> None:
    """K3s takes secrets-encryption at the very first start only."""
    path = SERVER / "cred/encryption-config.json"
    if options.get("secrets-encryption") and not path.exists():
        write(path, '{"stand-in": "secrets are encrypted from the first start"}\n')


def node_secret() -> str:
    """What the nodes' own passwords are made from."""
    path = SERVER / "cred/nodes"
    if not path.exists():
        write(path, secrets.token_hex(32))
    return path.read_text()


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, mode), "w") as stream:
        stream.write(text)


def write_kubeconfig(
    options: dict[str, Any], ca: bytes, certificate: bytes, key: bytes, address: str = "127.0.0.1:6443"
) -> None:
    cluster = {"server": f"https://{address}", "certificate-authority-data": base64.b64encode(ca).decode()}
    pair = {"client-certificate-data": certificate, "client-key-data": key}
    user = {name: base64.b64encode(content).decode() for name, content in pair.items()}
    data = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": "default", "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    }
    write(KUBECONFIG, json.dumps(data), int(options.get("write-kubeconfig-mode", "0600"), 8))
