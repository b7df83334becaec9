"""`k3s kubectl`, as far as the role and the scenarios ask: get nodes, leases, --raw; delete node."""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
from pathlib import Path
from typing import Any

import node
import yaml

ADMIN = Path("/etc/rancher/k3s/k3s.yaml")
KINDS = {"node": "/api/v1/nodes", "lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases"}


def main(words: list[str]) -> int:
    options = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
    access = opened(Path(options.get("--kubeconfig", ADMIN)))
    plain, skip = [], False
    for index, word in enumerate(words):
        if skip or word.startswith("--"):
            skip = False
            continue
        if word in ("-o", "-n"):
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


def fetch(access: dict[str, Any], path: str, method: str = "") -> bytes:
    address, login = access["server"].removeprefix("https://"), access.get("login")
    by = {"login": tuple(login) if login else None, "pair": access.get("pair", "")}
    return node.ask(address, path, access["ca"].encode(), method=method, **by)


def show(access: dict[str, Any], words: list[str], options: dict[str, str]) -> int:
    path = KINDS[words[0].removesuffix("s")].format(options.get("-n", "default"))
    data = json.loads(fetch(access, "/".join([path, *words[1:2]])))
    if options.get("-o") == "json":
        print(json.dumps(data))
        return 0
    for item in data.get("items", [data]):
        print(item["metadata"]["name"], "Ready")
    return 0
