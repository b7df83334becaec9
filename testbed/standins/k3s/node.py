"""A node's part: joining with a token, the files of a kubelet and of containerd, a lease that is renewed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import arguments
import certs

AGENT = certs.DATA / "agent"
CERTIFICATE = AGENT / "client-kubelet.crt"
PASSWORD = Path("/etc/rancher/node/password")
CNI = certs.DATA / "data/cni"
KUBELET = tuple(
    Path(path)
    for path in ("/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec")
)
BUNDLED = ("bandwidth", "bridge", "firewall", "flannel", "host-local", "loopback", "portmap")
RUNTIMES = {
    "nvidia": "nvidia-container-runtime",
    "nvidia-cdi": "nvidia-container-runtime.cdi",
    "nvidia-experimental": "nvidia-container-runtime-experimental",
}
RENEW = 2.0
Login = tuple[str, str]


class Fatal(Exception):
    """What K3s says before it ends."""


def log(level: str, text: str) -> None:
    quoted = text.replace('"', '\\"')
    print(f'time="{time.strftime("%FT%TZ", time.gmtime())}" level={level} msg="{quoted}"', file=sys.stderr, flush=True)


def notify(state: str = "READY=1") -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


def password(token: str) -> str:
    return token.partition("::")[2].partition(":")[2] if token.startswith("K10") else token


def ask(
    address: str,
    path: str,
    ca: bytes | None,
    login: Login | None = None,
    data: Any = None,
    *,
    method: str = "",
    headers: dict[str, str] | None = None,
    pair: str = "",
) -> bytes:
    context = ssl.create_default_context(cadata=ca.decode()) if ca else ssl._create_unverified_context()
    if pair:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(file.name)
    body = json.dumps(data).encode() if data is not None else None
    method = method or ("PUT" if body else "GET")
    request = urllib.request.Request(f"https://{address}{path}", data=body, method=method, headers=headers or {})
    if login:
        basic = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        request.add_header("Authorization", basic)
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return bytes(answer.read())


def admitted(options: dict[str, Any], user: str) -> tuple[str, bytes, Login]:
    """The server's address, its certificate and our login; asks for ever while no such server answers, as K3s does."""
    url = options.get("server")
    if not url:
        raise Fatal("Error: --server is required")
    file = options.get("token-file")
    token = awaited(Path(file)) if file else options.get("token", "")
    if not token:
        raise Fatal("Error: --token is required")
    address = str(url).removeprefix("https://")
    while True:
        try:
            ca = ask(address, "/cacerts", None)
            wanted = token[3:].partition("::")[0] if token.startswith("K10") else ""
            if not wanted or wanted == certs.fingerprint(ca):
                return address, ca, (user, password(token))
            there = certs.fingerprint(ca)
            refusal = f"token CA hash does not match the Cluster CA certificate hash: {wanted} != {there}"
        except OSError as error:
            refusal = f'failed to get CA certs: Get "https://{address}/cacerts": {error}'
        log("error", f"Failed to validate connection to cluster at {url}: {refusal}")
        time.sleep(2)


def awaited(file: Path) -> str:
    """A token that is written a little later is waited for."""
    until = time.monotonic() + 240
    while not file.exists():
        if time.monotonic() > until:
            raise Fatal(f"open {file}: no such file or directory")
        log("info", f"Waiting for {file} to be available")
        time.sleep(2)
    return file.read_text().strip()


class NotYetError(Exception):
    """Why there is no configuration for this node: K3s calls each an information, and asks again for ever."""


def configured(options: dict[str, Any], address: str, ca: bytes, login: Login) -> Login:
    """Who has joined once is let in by its certificate, whatever its token says."""
    while True:
        try:
            return configure(options, address, ca, by_certificate(options["node-name"]) or login)
        except (NotYetError, OSError) as refusal:
            log("info", f"Waiting to retrieve agent configuration; server is not ready: {refusal}")
            time.sleep(random.uniform(5, 10))


def by_certificate(name: str) -> Login | None:
    return (f"system:node:{name}", CERTIFICATE.read_text()) if CERTIFICATE.exists() else None


def configure(options: dict[str, Any], address: str, ca: bytes, login: Login) -> Login:
    """In K3s' order: the token, flannel's port, the node's own password."""
    try:
        ask(address, "/v1-k3s/config", ca, login)
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise NotYetError("failed to retrieve configuration from server: not authorized") from None
        raise
    interface = options.get("flannel-iface")
    if interface and not Path(f"/sys/class/net/{interface}").exists():
        raise NotYetError(f"unable to find interface {interface}: route ip+net: no such network interface")
    named = {"k3s-Node-Name": options["node-name"], "k3s-Node-Password": own_password()}
    try:
        given = ask(address, "/v1-k3s/serving-kubelet.crt", ca, login, headers=named)
    except urllib.error.HTTPError as error:
        if error.code == 403:
            raise NotYetError(
                f"Node password rejected, duplicate hostname or contents of '{PASSWORD}' may not match server "
                "node-passwd entry, try enabling a unique node name with the --with-node-id flag"
            ) from None
        raise
    CERTIFICATE.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(CERTIFICATE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(given)
    return login


def own_password() -> str:
    """What proves that a node is the one that joined by this name before; a machine that is installed anew has none."""
    if not PASSWORD.exists():
        PASSWORD.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(PASSWORD, os.O_WRONLY | os.O_CREAT, 0o600), "w") as stream:
            stream.write(secrets.token_hex(16) + "\n")
    return PASSWORD.read_text().strip()


def run_agent(options: dict[str, Any]) -> int:
    log("info", f"Starting k3s agent {arguments.facts()['release']}")
    address, ca, login = admitted(options, "node")
    return live(options, address, ca, login)


def live(options: dict[str, Any], address: str, ca: bytes, login: Login, *, control_plane: bool = False) -> int:
    """Until it is told to stop: files, the node's object, its lease."""
    login = configured(options, address, ca, login)
    prepare(address, ca, login)
    ended: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: ended.append(number))
    name, listed = options["node-name"], None
    while not ended:
        try:
            if listed is None:
                listed = relabelled(described(options, control_plane), address, ca, login)
                ask(address, f"/api/v1/nodes/{name}", ca, login, listed)
                log("info", f"node {name} is registered")
            ask(address, lease_path(name), ca, login, lease(name))
        except OSError as error:
            log("error", f"server at {address} does not answer: {error}")
        time.sleep(RENEW)
    notify("STOPPING=1")
    return 0


def prepare(address: str, ca: bytes, login: Login) -> None:
    """What K3s lays down for containerd, CNI and the kubelet."""
    tree = certs.DATA / "data" / hashlib.sha256(b"stand-in").hexdigest() / "bin"
    current = certs.DATA / "data/current"
    current.parent.mkdir(parents=True, exist_ok=True)
    current.unlink(missing_ok=True)
    current.symlink_to(tree.parent)
    for folder in (tree, CNI, AGENT / "etc/cni/net.d", AGENT / "etc/containerd", AGENT / "images", *KUBELET):
        folder.mkdir(parents=True, exist_ok=True)
    (tree / "cni").write_text("#!/bin/sh\nexit 1\n")
    for plugin in ("cni", *BUNDLED):
        link = CNI / plugin
        if link.is_symlink() or not link.exists():  # a real file is somebody's own and stays
            link.unlink(missing_ok=True)
            link.symlink_to(tree / "cni")
    paths = {name: path for name, program in RUNTIMES.items() if (path := shutil.which(program))}
    tables = [
        f"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'{name}'.options]\n  BinaryName = \"{path}\"\n"
        for name, path in paths.items()
    ]
    text = f'# File generated by k3s. DO NOT EDIT.\nversion = 3\n# bin_dirs = ["{CNI}"]\n\n' + "\n".join(tables)
    (AGENT / "etc/containerd/config.toml").write_text(text)
    access = {"server": f"https://{address}", "ca": ca.decode(), "login": list(login)}
    with os.fdopen(os.open(AGENT / "kubelet.kubeconfig", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(json.dumps(access))


def relabelled(new: dict[str, Any], address: str, ca: bytes, login: Login) -> dict[str, Any]:
    """At each start the labels of its settings are set; others stay as they are."""
    try:
        old = json.loads(ask(address, f"/api/v1/nodes/{new['metadata']['name']}", ca, login))
    except urllib.error.HTTPError:
        return new
    new["metadata"]["labels"] = old["metadata"]["labels"] | new["metadata"]["labels"]
    return new


def described(options: dict[str, Any], control_plane: bool) -> dict[str, Any]:
    labels = dict(label.split("=", 1) for label in options.get("node-label", []))
    if control_plane:
        labels |= {f"node-role.kubernetes.io/{role}": "true" for role in ("control-plane", "etcd")}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "stand-in posts ready"}
    address = {"type": "InternalIP", "address": options["node-ip"][0]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": options["node-name"], "labels": labels},
        "status": {
            "addresses": [address],
            "conditions": [ready],
            "nodeInfo": {"kubeletVersion": arguments.facts()["release"]},
        },
    }


def lease_path(name: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"


def lease(name: str) -> dict[str, Any]:
    now = time.time()
    renewed = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
