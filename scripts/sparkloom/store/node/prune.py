"""What lies in a store, and which of it may go: only what no kept model uses."""

from __future__ import annotations

import json
import shutil
from typing import Any

from .layout import Store


def listing(store: Store) -> list[dict[str, Any]]:
    """Every snapshot with its bytes, newest use of a model's name first."""
    found = []
    for path in sorted((store.root / "manifests").glob("*/*.json")):
        snapshot = json.loads(path.read_text())["snapshot"]
        current = store.current(snapshot["id"]) == snapshot["commit"]
        size = sum(file["size"] for file in snapshot["files"])
        found.append({"id": snapshot["id"], "commit": snapshot["commit"], "bytes": size, "current": current})
    return found


def prune(store: Store, keep: list[str], confirmed: bool) -> dict[str, Any]:
    """Models that are not in `keep`. Without consent it only says what would go."""
    going = sorted({row["id"] for row in listing(store)} - set(keep))
    size = sum(row["bytes"] for row in listing(store) if row["id"] in going)
    for model in going if confirmed else []:
        store.link(model).unlink(missing_ok=True)
        shutil.rmtree(store.manifest(model, "").parent, ignore_errors=True)
        shutil.rmtree(store.repository(model), ignore_errors=True)
    return {"models": going, "bytes": size, "removed": confirmed}
