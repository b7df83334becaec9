"""The recipe that a profile's image is built by, where it is one of ours."""

from __future__ import annotations

import os
from functools import lru_cache

from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs import image_recipes
from sparkloom.inputs.image_recipes import LoadedRecipe
from sparkloom.inputs.profile import LoadedSketch


def of(loaded: LoadedSketch) -> LoadedRecipe | None:
    """None where the image is somebody else's; a name without a recipe is refused where the profile says it."""
    name = loaded.profile.engine.recipe
    if name is None:
        return None
    try:
        return _read(name, os.environ.get(image_recipes.OWN, ""))
    except InputError as error:
        problems = [
            Problem(*loaded.document.position(("engine", "recipe")), problem.message, problem.rule)
            if problem.rule == "missing-file"
            else problem
            for problem in error.problems
        ]
        raise InputError(problems) from None


@lru_cache(maxsize=64)
def _read(name: str, own: str) -> LoadedRecipe:
    """Once: a search asks for the same launch thousands of times."""
    return image_recipes.load(name)
