"""Which commit of its models a launch is of: the profile's own revision, else what the site locked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from sparkloom.inputs.profile import LoadedSketch, Named
from sparkloom.onnode.weights.names import COMMIT

L = TypeVar("L", bound=LoadedSketch)


def pinned(loaded: L, locked: Mapping[str, str]) -> L:
    """The profile with the site's commits where it names none itself."""
    model = loaded.profile.model
    draft = model.draft
    if draft and draft.revision is None:
        draft = draft.model_copy(update={"revision": locked.get(draft.id)})
    changes = {"draft": draft, "revision": model.revision or locked.get(model.id)}
    profile = loaded.profile.model_copy(update={"model": model.model_copy(update=changes)})
    return replace(loaded, profile=profile)


def open_ends(model: Named) -> dict[str, str | None]:
    """Checkpoints without a revision of the profile's own, which the site's lock decides."""
    return {name: revision for name, revision in _revisions(model).items() if revision is None}


def moving(model: Named) -> frozenset[str]:
    """Checkpoints that no commit pins: a branch or a tag is what its publisher makes of it."""
    return frozenset(name for name, revision in _revisions(model).items() if not COMMIT.fullmatch(revision or ""))


def _revisions(model: Named) -> dict[str, str | None]:
    return {part.id: part.revision for part in (model, model.draft) if part}
