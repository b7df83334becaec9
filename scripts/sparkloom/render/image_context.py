"""A recipe of an image as the folder that BuildKit builds from: the same recipe is the same bytes everywhere.

Plain Dockerfile syntax that every BuildKit reads by itself: no `# syntax` line, which would fetch a program first. What
is downloaded lies in caches that outlive a build that was cut off; the layers hold none of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.image_recipes import SCRATCH, Base, File, LoadedRecipe, Recipe
from sparkloom.launch import patches
from sparkloom.onnode.images import build
from sparkloom.onnode.rank.reading import digest
from sparkloom.render import pack

TOOLS = "/opt/sparkloom-image"
WHEELS, PATCHES, APPLY = "requirements.txt", "patches.json", "apply.pyz"
NOTES = "/usr/share/sparkloom"  # what a build took as it found it: packages, commits
IDENTITY = build.LABEL  # by which an image tells what it was built from
Context = Mapping[str, bytes]


def context(loaded: LoadedRecipe) -> dict[str, bytes]:
    """File in the build's folder -> contents."""
    recipe = loaded.recipe
    files = {file.file: _content(loaded, number, file) for number, file in enumerate(recipe.files)}
    if recipe.wheels:
        files[WHEELS] = _requirements(recipe).encode()
    if recipe.patches:
        _known(loaded)
        files[PATCHES] = (json.dumps(patches.as_data(recipe.patches), indent=1) + "\n").encode()
        files[APPLY] = pack.program("patch_image").archive
    whole = {**files, "Dockerfile": _text(loaded, "").encode()}
    return {**files, "Dockerfile": _text(loaded, identity(whole)).encode()}


def identity(files: Context) -> str:
    """Of all that a build is told, less this itself."""
    return digest(files, 64)


def of(loaded: LoadedRecipe) -> str:
    """A recipe's identity, as the label of what was built from it says it."""
    return identity({**context(loaded), "Dockerfile": _text(loaded, "").encode()})


def online(recipe: Recipe) -> bool:
    """Whether a step downloads; else the build has no network at all."""
    stage = recipe.build
    return bool(recipe.packages or recipe.wheels or (stage and (stage.packages or stage.git)))


def _content(loaded: LoadedRecipe, number: int, file: File) -> bytes:
    path = loaded.folder / file.file
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"{path}: {error.strerror}; expected beside the recipe"
        raise loaded.document.refusal(("files", number, "file"), message, "missing-file") from None
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        message = f"{file.file} has sha256 {found}, expected {file.sha256}; correct the one that is wrong"
        raise loaded.document.refusal(("files", number, "sha256"), message, "bad-digest")
    return content


def _known(loaded: LoadedRecipe) -> None:
    for number, name in enumerate(loaded.recipe.patches):
        if name not in patches.names():
            message = f"no patch '{name}'{did_you_mean(name, patches.names())}"
            raise InputError([loaded.document.problem(("patches", number), message, "unknown-patch")])


def _requirements(recipe: Recipe) -> str:
    """Every wheel with its hashes; one without is installed by its version alone, which pip then says of all."""
    rows = [
        f"{wheel.name}=={wheel.version}" + "".join(f" \\\n    --hash=sha256:{digest}" for digest in wheel.sha256)
        for wheel in sorted(recipe.wheels, key=lambda one: one.name.lower())
    ]
    return "\n".join(rows) + "\n"


def _text(loaded: LoadedRecipe, made_of: str) -> str:
    recipe = loaded.recipe
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["quoted"] = _quoted
    return templates.get_template("Dockerfile.j2").render(
        name=loaded.name,
        recipe=recipe,
        labels={**recipe.labels, **_labels(loaded, made_of)},
        hashed=all(wheel.sha256 for wheel in recipe.wheels),
        cache=_cache,
        scratch=SCRATCH,
        notes=NOTES,
        tools=TOOLS,
        requirements=WHEELS,
        patches=PATCHES,
        apply=APPLY,
    )


def _cache(base: Base) -> str:
    """The lists and archives of packages stay in caches of this base's own."""
    return "apt-" + hashlib.sha256((base.digest or base.image).encode()).hexdigest()[:12]


def _quoted(text: str) -> str:
    """As a Dockerfile takes a value: it fills in variables between quotes, too."""
    return json.dumps(text).replace("$", "\\$")


def _labels(loaded: LoadedRecipe, made_of: str) -> dict[str, str]:
    recipe = loaded.recipe
    told = {
        "sparkloom.engine": f"{recipe.serves.engine} {recipe.serves.release}",
        "sparkloom.recipe": loaded.name,
        IDENTITY: made_of,
    }
    if recipe.base.image != SCRATCH:
        told["org.opencontainers.image.base.name"] = recipe.base.image
        told |= {"org.opencontainers.image.base.digest": recipe.base.digest} if recipe.base.digest else {}
    return told | ({"sparkloom.patches": " ".join(recipe.patches)} if recipe.patches else {})
