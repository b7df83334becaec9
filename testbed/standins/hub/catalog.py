"""Every model that a profile names, shipped or of the real engines, generated when a client first asks for it."""

from __future__ import annotations

import threading
from pathlib import Path

from sparkloom.inputs import profile
from sparkloom.inputs.profile import Model
from sparkloom.onnode.weights.names import COMMIT
from testbed.standins.hub import repository, tiny, weights

SHAPE = weights.Shape(shards=4, shard_bytes=2 * weights.MIB)


class Catalog:
    def __init__(self, data: Path, shape: weights.Shape = SHAPE) -> None:
        self.data, self.shape = data, shape
        self._lock = threading.Lock()
        self._models: dict[str, Model] | None = None

    def ensure(self, model: str) -> None:
        """Makes the model's repository where a profile knows it and nobody made it before, or not what it pins."""
        with self._lock:
            known = self._known().get(model)
            if known and self._lacks(known):
                repository.make(self.data, known, self.shape)

    def _lacks(self, model: Model) -> bool:
        root = repository.folder(self.data, model.id)
        if not (root / "repository.json").exists():
            return True
        pinned = COMMIT.fullmatch(model.revision or "")
        return bool(pinned) and model.revision not in repository.load(root).commits

    def _known(self) -> dict[str, Model]:
        """Two profiles may name one model: files of both are made. A draft model gets its model's shape."""
        if self._models is None:
            self._models = {}
            for name in [*profile.names(), *tiny.PROFILES.glob("*.yml")]:
                model = profile.load(name).profile.model
                known = self._models.setdefault(model.id, model)
                if model.file and not known.file:
                    self._models[model.id] = model
                if model.draft:
                    own = {"id": model.draft.id, "revision": model.draft.revision}
                    self._models.setdefault(model.draft.id, model.model_copy(update=own))
        return self._models
