"""`k3s kubectl`, as far as the role and the scenarios ask: get nodes, leases, --raw; delete node; sign a request."""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
from pathlib import Path
from typing import Any

import certs
import node
import yaml

ADMIN = Path("/etc/rancher/k3s/k3s.yaml")
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
KINDS = {"node": "/api/v1/nodes", "lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases"}
APPLIED = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CertificateSigningRequest": REQUESTS,
}


def main(words: list[str]) -> int:
    options = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
    access = opened(Path(options.get("--kubeconfig", ADMIN)))
    plain, skip = [], False
    for index, word in enumerate(words):
        if skip or word.startswith("--"):
            skip = False
            continue
        if word in ("-o", "-n", "-f"):
            options[word], skip = words[index + 1], True
            continue
        plain.append(word)
    try:
        if "--raw" in options:
            print(fetch(access, options["--raw"]).decode())
            return 0
        if plain[:2] == ["delete", "node"]:
            fetch(access, f"{KINDS['node']}/{plain[2]}", method="DELETE")
            print(f'node "{plain[2]}" deleted')
            return 0
        if plain[0] == "apply":
            return apply(access)
        if plain[:2] == ["certificate", "approve"]:
            return approve(access, plain[2].removeprefix("csr/"))
        if plain[0] == "wait":  # signed as soon as it is approved
            return 0
        if plain[1].startswith("csr/"):
            found = json.loads(fetch(access, f"{REQUESTS}/{plain[1].removeprefix('csr/')}"))
            print(found["status"]["certificate"], end="")
            return 0
        return show(access, plain[1:], options)
    except urllib.error.HTTPError as error:
        print(f"Error from server ({error.reason}): {' '.join(plain)}", file=sys.stderr)
    except (OSError, IndexError, KeyError) as error:
        print(f"The connection to the server was refused - {error!r}", file=sys.stderr)
    return 1


def opened(path: Path) -> dict[str, Any]:
    """The kubelet's own file, or the administrator's kubeconfig."""
    data = yaml.safe_load(path.read_text())
    if "clusters" not in data:
        return dict(data)
    cluster = data["clusters"][0]["cluster"]
    user = data["users"][0]["user"]
    pair = [base64.b64decode(user[f"client-{part}-data"]).decode() for part in ("certificate", "key")]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return {"server": cluster["server"], "ca": ca, "pair": "".join(pair)}


def fetch(access: dict[str, Any], path: str, method: str = "", data: Any = None) -> bytes:
    address, login = access["server"].removeprefix("https://"), access.get("login")
    by = {"login": tuple(login) if login else None, "pair": access.get("pair", "")}
    return node.ask(address, path, access["ca"].encode(), method=method, data=data, **by)


def apply(access: dict[str, Any]) -> int:
    for item in json.load(sys.stdin)["items"]:
        fetch(access, f"{APPLIED[item['kind']]}/{item['metadata']['name']}", data=item)
    return 0


def approve(access: dict[str, Any], name: str) -> int:
    """As K3s' own signer: by the authority of clients, as long as was asked; never for system:masters."""
    item = json.loads(fetch(access, f"{REQUESTS}/{name}"))
    signed = certs.admitted(base64.b64decode(item["spec"]["request"]), item["spec"]["expirationSeconds"])
    item["status"] = {"certificate": base64.b64encode(signed).decode()}
    fetch(access, f"{REQUESTS}/{name}", data=item)
    return 0


def show(access: dict[str, Any], words: list[str], options: dict[str, str]) -> int:
    path = KINDS[words[0].removesuffix("s")].format(options.get("-n", "default"))
    data = json.loads(fetch(access, "/".join([path, *words[1:2]])))
    if options.get("-o") == "json":
        print(json.dumps(data))
        return 0
    for item in data.get("items", [data]):
        print(item["metadata"]["name"], "Ready")
    return 0
