"""Every model that a shipped profile names, generated when a client first asks for it."""

from __future__ import annotations

import threading
from pathlib import Path

from sparkloom.inputs import profile
from sparkloom.inputs.profile import Model
from testbed.standins.hub import repository, weights

SHAPE = weights.Shape(shards=4, shard_bytes=2 * weights.MIB)


class Catalog:
    def __init__(self, data: Path, shape: weights.Shape = SHAPE) -> None:
        self.data, self.shape = data, shape
        self._lock = threading.Lock()
        self._models: dict[str, Model] | None = None

    def ensure(self, model: str) -> None:
        """Makes the model's repository where a profile knows it and nobody made it before."""
        if (repository.folder(self.data, model) / "repository.json").exists():
            return
        with self._lock:
            known = self._known().get(model)
            if known and not (repository.folder(self.data, model) / "repository.json").exists():
                repository.make(self.data, known, self.shape)

    def _known(self) -> dict[str, Model]:
        """Two profiles may name one model: files of both are made. A draft model gets its model's shape."""
        if self._models is None:
            self._models = {}
            for name in profile.names():
                model = profile.load(name).profile.model
                known = self._models.setdefault(model.id, model)
                if model.file and not known.file:
                    self._models[model.id] = model
                if model.draft:
                    self._models.setdefault(model.draft.id, model.model_copy(update={"id": model.draft.id}))
        return self._models
