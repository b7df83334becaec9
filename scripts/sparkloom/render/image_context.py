"""A recipe of an image as the folder that BuildKit builds from: the same recipe is the same bytes everywhere.

Plain Dockerfile syntax that every BuildKit reads by itself: no `# syntax` line, which would fetch a program first. What
is downloaded lies in caches that outlive a build that was cut off; the layers hold none of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.image_recipes import SCRATCH, Base, Copy, File, Git, LoadedRecipe, Recipe
from sparkloom.launch import patches
from sparkloom.onnode.images import build
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
        files[PATCHES] = (json.dumps(patches.told(recipe.patches), indent=1) + "\n").encode()
        files[APPLY] = pack.program("patch_image").archive
    whole = {**files, "Dockerfile": _text(loaded, "").encode()}
    return {**files, "Dockerfile": _text(loaded, identity(whole)).encode()}


def identity(files: Context) -> str:
    """Of all that a build is told, less this itself."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def of(loaded: LoadedRecipe) -> str:
    """A recipe's identity, as the label of what was built from it says it."""
    return identity({**context(loaded), "Dockerfile": _text(loaded, "").encode()})


def online(recipe: Recipe) -> bool:
    """Whether a step downloads; else the build has no network at all."""
    stage = recipe.build
    return bool(recipe.packages or recipe.wheels or (stage and (stage.packages or stage.git)))


def _content(loaded: LoadedRecipe, number: int, file: File) -> bytes:
    path = loaded.folder / file.file
    loc = ("files", number, "file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise loaded.document.refusal(
            loc, f"{path}: {error.strerror}; expected beside the recipe", "missing-file"
        ) from None
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
    lines = [
        f"# {loaded.name}: {loaded.recipe.summary}",
        "# Written by `sparkloom image render`; changed in the recipe.",
    ]
    return "\n".join([*lines, *_stage(loaded.recipe), *_image(loaded, made_of)]) + "\n"


def _stage(recipe: Recipe) -> Iterator[str]:
    stage = recipe.build
    if not stage:
        return
    yield from _begun(stage.base, "build")
    yield from _packages(stage.packages, stage.base)
    yield from (line for git in stage.git for line in _fetched(git))
    if stage.workdir != "/":
        yield f"WORKDIR {stage.workdir}"
    yield from (f"RUN {words}" for words in stage.run)


def _begun(base: Base, name: str = "") -> Iterator[str]:
    yield f"FROM {base.image}{'@' + base.digest if base.digest else ''}{' AS ' + name if name else ''}"
    if base.image != SCRATCH:
        yield "ARG SOURCE_DATE_EPOCH"  # in the environment of each step: pip and tar write this time


def _packages(packages: Iterable[str], base: Base) -> Iterator[str]:
    """Lists and archives stay in caches of this base's own; what was installed is written down in the image."""
    named = " ".join(sorted(packages))
    if not named:
        return
    key = "apt-" + hashlib.sha256((base.digest or base.image).encode()).hexdigest()[:12]
    mounts = " ".join(
        f"--mount=type=cache,sharing=locked,id={key}-{name},target={target}"
        for name, target in (("lists", "/var/lib/apt/lists"), ("archives", "/var/cache/apt"))
    )
    yield (
        f"RUN {mounts} \\\n"
        "    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update \\\n"
        f"    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {named} \\\n"
        f"    && mkdir -p {NOTES} && dpkg-query -W > {NOTES}/packages.txt \\\n"
        "    && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache"
    )


def _fetched(git: Git) -> Iterator[str]:
    """One commit without its history; by its tag where that is all that the recipe knows."""
    wanted = git.commit or git.ref
    held = f' && test "$(git -C {git.to} rev-parse HEAD)" = {git.commit}' if git.commit else ""
    yield (
        f"RUN git init -q {git.to} && cd {git.to} \\\n"
        f"    && git fetch -q --depth 1 {git.repository} {wanted} && git checkout -q FETCH_HEAD{held} \\\n"
        "    && git submodule update -q --init --recursive --depth 1 \\\n"
        f'    && mkdir -p {NOTES} && echo "{git.repository} {git.ref} $(git rev-parse HEAD)" >> {NOTES}/commits.txt'
    )


def _image(loaded: LoadedRecipe, made_of: str) -> Iterator[str]:
    recipe = loaded.recipe
    yield from _begun(recipe.base)
    yield from _packages(recipe.packages, recipe.base)
    if recipe.wheels:
        hashes = "--require-hashes " if all(wheel.sha256 for wheel in recipe.wheels) else ""
        yield (
            "RUN --mount=type=cache,id=pip,target=/root/.cache/pip "
            f"--mount=type=bind,source={WHEELS},target=/tmp/{WHEELS} \\\n"
            "    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-deps --only-binary :all: --no-input \\\n"
            f"    --root-user-action ignore {hashes}-r /tmp/{WHEELS}"
        )
    yield from (f"{'ADD' if file.unpack else 'COPY'} {file.file} {file.to}" for file in recipe.files)
    yield from _copies(recipe.copies, recipe)
    if recipe.patches:
        yield f"COPY {APPLY} {PATCHES} {TOOLS}/"
        yield f"RUN python3 {TOOLS}/{APPLY} {TOOLS}/{PATCHES}"
    yield from (f"ENV {name}={_quoted(value)}" for name, value in sorted(recipe.env.items()))
    yield from (f"RUN {words}" for words in recipe.run)
    yield from (f"RUN {words}" for words in recipe.proof)
    rows = sorted({**recipe.labels, **_labels(loaded, made_of)}.items())
    yield "LABEL " + " \\\n    ".join(f"{name}={_quoted(value)}" for name, value in rows)


def _quoted(text: str) -> str:
    """As a Dockerfile takes a value: it fills in variables between quotes, too."""
    return json.dumps(text).replace("$", "\\$")


def _copies(copies: Iterable[Copy], recipe: Recipe) -> Iterator[str]:
    """With the stage's notes of what it fetched, where it fetched something."""
    yield from (f"COPY --from=build {copy.path} {copy.to}" for copy in copies)
    if recipe.build and recipe.build.git:
        yield f"COPY --from=build {NOTES}/commits.txt {NOTES}/commits.txt"


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
