"""Images that are ours to build: one recipe a file, `image_recipes/<name>.yml`, read and judged by its form.

A recipe says what an image is made of by content: bases by digest, wheels by sha256, sources by commit. What cannot be
said so is left out, never made up: `unpinned` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from sparkloom.base import document
from sparkloom.base.document import Document, Fault, Loc
from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.base.repository import REPO
from sparkloom.inputs.profile import Strict
from sparkloom.onnode.images import reference
from sparkloom.onnode.images.reference import DIGEST

FOLDER = REPO / "image_recipes"
OWN = "SPARKLOOM_IMAGE_RECIPES"  # names a folder with more of them
# Whose images these are: no resolver ever knows a name below .invalid (RFC 6761), so nobody's registry can be asked for
# one; and it is no localhost, which K3s' registry between the nodes leaves out.
HOST = "built.sparkloom.invalid"
SCRATCH = "scratch"  # an image without anything in it: nothing to pin

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Digest = Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")]
Package = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]*(=[A-Za-z0-9.+:~-]+)?$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Words = Annotated[str, StringConstraints(pattern=r"^\S[^\n]*$")]  # one line of shell


def _absolute(text: str) -> str:
    parts = text[1:].rstrip("/").split("/") if text != "/" else []
    if not text.startswith("/") or any(part in ("..", "") for part in parts) or " " in text:
        raise ValueError(f"'{text}' is no path inside an image; write one that begins with /")
    return text


def _file_name(text: str) -> str:
    if text.startswith(("/", "~", ".")) or ".." in text.split("/") or not text.strip() or " " in text:
        raise ValueError(f"'{text}' is no file beside the recipe; write its name")
    return text


Inside = Annotated[str, AfterValidator(_absolute)]
Beside = Annotated[str, AfterValidator(_file_name)]


class Base(Strict):
    image: Words = Field(description="name and tag, for people; `scratch` begins with nothing")
    digest: Digest | None = Field(default=None, description="of the index or of the platform's image; what is built on")
    source: str = Field(default="", description="where the digest was read")


class Wheel(Strict):
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.!+_-]+$")]
    sha256: list[Sha256] = Field(default=[], description="of the files that may be installed")


class Git(Strict):
    repository: Annotated[str, StringConstraints(pattern=r"^https://[A-Za-z0-9./_~-]+$")]
    ref: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/-]+$")] = Field(
        description="tag or branch, for people; what is fetched where there is no commit"
    )
    commit: Commit | None = None
    to: Inside


class Copy(Strict):
    """From the stage `build`, which is not in the image itself."""

    path: Inside
    to: Inside


class File(Strict):
    """A file beside the recipe."""

    file: Beside
    sha256: Sha256
    to: Inside
    unpack: bool = Field(default=False, description="a tar archive whose contents go there")


class Build(Strict):
    """A stage of its own: fetches and compiles, and leaves only what `copies` takes from it."""

    base: Base
    packages: list[Package] = Field(default=[])
    git: list[Git] = Field(default=[])
    workdir: Inside = "/"
    run: list[Words] = Field(default=[], description="lines of shell, one step each")


class Serves(Strict):
    engine: str
    release: str = Field(description="whose dialect the image speaks, as in engine.release of a profile")


class Needs(Strict):
    """What a node has free before a build begins. A build beside a serving engine takes its memory."""

    disk_gb: Annotated[float, Field(gt=0, le=4000)]
    memory_gib: Annotated[float, Field(gt=0, le=128)]


class Recipe(Strict):
    summary: str
    image: Words = Field(description=f"name:tag that pods ask for, below {HOST}/")
    serves: Serves
    platform: Literal["linux/arm64", "linux/amd64"] = "linux/arm64"
    epoch: Annotated[int, Field(ge=0, le=4102444800)] = Field(
        description="SOURCE_DATE_EPOCH of the build: the time that its files bear"
    )
    base: Base
    build: Build | None = None
    packages: list[Package] = Field(default=[], description="of the distribution, as it has them that day")
    wheels: list[Wheel] = Field(default=[], description="all of them: nothing is resolved in the build")
    files: list[File] = Field(default=[])
    copies: list[Copy] = Field(default=[])
    patches: list[str] = Field(default=[], description="source patches of ours that are applied, by name")
    env: dict[Variable, Words] = Field(default={})
    run: list[Words] = Field(default=[])
    proof: list[Words] = Field(default=[], description="must hold in the finished image, or the build ends")
    labels: dict[str, Words] = Field(default={})
    needs: Needs
    sources: Annotated[list[str], Field(min_length=1)]
    unknown: list[str] = Field(default=[], description="what could not be found out here, and who can")

    @model_validator(mode="after")
    def _is_whole(self) -> Recipe:
        named = reference.parse(self.image)
        if not self.image.startswith(f"{HOST}/") or named.digest or named.tag == "latest":
            raise ValueError(f"image '{self.image}' must be {HOST}/NAME:TAG: no registry can have such a name")
        if self.copies and self.build is None:
            raise ValueError("copies take from the stage `build`, and there is none")
        if self.base.image == SCRATCH and self.base.digest:
            raise ValueError("base.digest: scratch is no image and has none; remove it")
        return self

    @property
    def name_and_tag(self) -> tuple[str, str]:
        named = reference.parse(self.image)
        return named.name, named.tag


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    name: str
    recipe: Recipe
    document: Document
    folder: Path  # where its files lie


def names() -> list[str]:
    """Shipped ones, and those of the person's own folder."""
    places = document.places(FOLDER, OWN)
    return sorted({path.stem for place in places for path in place.glob("*.yml")})


def load(name_or_path: str | Path) -> LoadedRecipe:
    text = str(name_or_path)
    path = document.find(text, FOLDER, OWN)
    if path is None:
        message = f"no such recipe of an image{did_you_mean(text, names())}; `sparkloom image list` lists them"
        raise InputError.single(text or "NAME", message, rule="missing-file")
    shown = str(path.relative_to(Path.cwd())) if path.is_absolute() and path.is_relative_to(Path.cwd()) else str(path)
    read = document.load(path, shown=shown)
    return LoadedRecipe(path.stem, document.validate(Recipe, read), read, path.parent)


def _bases(recipe: Recipe) -> Iterator[tuple[Loc, Base]]:
    yield ("base",), recipe.base
    if recipe.build:
        yield ("build", "base"), recipe.build.base


def unpinned(recipe: Recipe) -> list[Fault]:
    """Inputs of which the next build may take others: no two such builds are known to be alike."""
    bases = [
        Fault((*loc, "image"), f"{'.'.join(map(str, loc))} {base.image} has no digest")
        for loc, base in _bases(recipe)
        if base.image != SCRATCH and not base.digest
    ]
    wheels = [
        Fault(("wheels", number), f"wheel {wheel.name} {wheel.version} has no sha256")
        for number, wheel in enumerate(recipe.wheels)
        if not wheel.sha256
    ]
    return bases + wheels


def moving(recipe: Recipe) -> list[Fault]:
    """What a build takes as it finds it that day, and writes down in the image."""
    stage = recipe.build
    tags = [
        Fault(("build", "git", number), f"{git.repository} is fetched by its tag {git.ref}, which can be set anew")
        for number, git in enumerate(stage.git if stage else ())
        if not git.commit
    ]
    both = {("packages",): recipe.packages, ("build", "packages"): stage.packages if stage else []}
    apt = [
        Fault(loc, f"{len(given)} packages of the distribution come as its archive has them that day")
        for loc, given in both.items()
        if any("=" not in package for package in given)
    ]
    return tags + apt
