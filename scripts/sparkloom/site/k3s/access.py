"""The administrator's access to the cluster: K3s' kubeconfig, made usable from the controller."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path

import yaml

from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.render.k3s import paths


def keep(target: str, given: str, api: str, name: str, *, dry: bool = False) -> bool:
    """Write it where the inventory says, 0600; tells whether that changed anything. Never over somebody else's file."""
    path, text = Path(target), rewritten(given, api, name)
    before = path.read_text() if path.exists() else None
    if before == text and path.stat().st_mode & 0o077 == 0:
        return False
    if before is not None and not _is_ours(before, name):
        raise InputError.single(
            target,
            f"holds another cluster's access and is left alone; name another file in cluster.kubernetes.kubeconfig "
            f"(cluster.yml), or remove it (expected a context '{name}')",
            rule="foreign-kubeconfig",
        )
    if not dry:
        files.write(path, text, 0o600)
    return True


def is_kept(target: str, name: str) -> bool:
    path = Path(target)
    return path.exists() and _is_ours(path.read_text(), name)


def rewritten(given: str, api: str, name: str) -> str:
    """A kubeconfig of our own around the three certificates and keys of K3s'.

    Nothing else of it is taken: `exec:` of a user is a program that runs here, and an API without its certificate is
    anybody's.
    """
    try:
        data = yaml.safe_load(given)
        cluster, user = data["clusters"][0]["cluster"], data["users"][0]["user"]
        told = [cluster["certificate-authority-data"], user["client-certificate-data"], user["client-key-data"]]
        authority, certificate, key = (b64encode(b64decode(part, validate=True)).decode() for part in told)
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        message = "expected certificate-authority-data, client-certificate-data and client-key-data in base64"
        raise InputError.single(f"{paths.KUBECONFIG} of the first server", message, rule="machine-answer") from None
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": api, "certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"client-certificate-data": certificate, "client-key-data": key}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(made, sort_keys=False)


def _is_ours(text: str, name: str) -> bool:
    try:
        data = yaml.safe_load(text)
        return [entry["name"] for entry in data["contexts"]] == [name]
    except (yaml.YAMLError, TypeError, KeyError):
        return not text.strip()
