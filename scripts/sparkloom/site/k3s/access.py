"""The administrator's access to the cluster: K3s' kubeconfig, made usable from the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from sparkloom.base import files
from sparkloom.base.errors import InputError


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
    """K3s writes 127.0.0.1 and calls everything `default`."""
    data: dict[str, Any] = yaml.safe_load(given)
    for kind in ("clusters", "users", "contexts"):
        for entry in data[kind]:
            entry["name"] = name
    for entry in data["clusters"]:
        entry["cluster"]["server"] = api
    for entry in data["contexts"]:
        entry["context"] |= {"cluster": name, "user": name}
    data["current-context"] = name
    return yaml.safe_dump(data, sort_keys=False)


def _is_ours(text: str, name: str) -> bool:
    try:
        data = yaml.safe_load(text)
        return [entry["name"] for entry in data["contexts"]] == [name]
    except (yaml.YAMLError, TypeError, KeyError):
        return not text.strip()
