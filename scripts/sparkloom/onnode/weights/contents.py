"""What lies in a store, and taking models out of it by name."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import Any

from sparkloom.onnode.weights.layout import Store, StoreError


def listing(store: Store) -> list[dict[str, Any]]:
    """Every verified snapshot with its bytes; `current` is the one that engines get by the model's name."""
    snapshots = []
    for path in sorted((store.root / "manifests").glob("*/*.json")):
        snapshot = json.loads(path.read_text())["snapshot"]
        current = store.current(snapshot["id"]) == snapshot["commit"]
        size = sum(file["size"] for file in snapshot["files"])
        snapshots.append({"id": snapshot["id"], "commit": snapshot["commit"], "bytes": size, "current": current})
    return snapshots


def remove(store: Store, models: list[str]) -> list[str]:
    """The models that were there and are not any more. The manifest goes first: half a model is no verified one."""
    gone = []
    for model in models:
        if model.count("/") != 1 or ".." in model:
            raise StoreError(f"'{model}' is no model's name; write org/name in model_store_remove")
        if store.repository(model).is_dir():
            shutil.rmtree(store.manifest(model, "").parent, ignore_errors=True)
            store.link(model).unlink(missing_ok=True)
            shutil.rmtree(store.repository(model))
            gone.append(model)
    for folder in (store.root / "by-name", store.root / "manifests", store.root):
        with contextlib.suppress(OSError):  # not empty: other models, or what someone else keeps there
            folder.rmdir()
    return gone
