"""The context of an image for SM121: a pinned base, the patches of a profile, and labels that say what is inside.

`apply.pyz` (onnode/patch_image.py) runs in the build and changes the installed files as the supervisor would in its
overlay, with the same code. All patches apply or the build ends; a rank that starts from such an image finds them
applied and leaves them alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import patches
from sparkloom.onnode.images.reference import DIGEST
from sparkloom.onnode.rank import patching
from sparkloom.render import pack

FOLDER = "/opt/sparkloom-image"


def dockerfile(loaded: LoadedProfile, digest: str) -> str:
    """Refused without a digest: a tag can mean another build tomorrow, and the patches were judged against files."""
    engine = loaded.profile.engine
    if not DIGEST.fullmatch(digest):
        message = f"'{digest}' is no image digest; expected sha256: and 64 hex digits (--digest, or engine.digest)"
        raise InputError.single(loaded.document.file, message, rule="bad-digest")
    told = patches.of(loaded)
    if not told:
        raise InputError.single(
            loaded.document.file, "names no engine.patches: its image needs none", rule="no-patches"
        )
    base = engine.image.partition("@")[0]
    labels = {
        "org.opencontainers.image.base.name": base,
        "org.opencontainers.image.base.digest": digest,
        "sparkloom.engine": f"{engine.name} {engine.release}",
        "sparkloom.patches": " ".join(patch["id"] for patch in told),
        "sparkloom.platform": "sm121",
    }
    lines = [f"  {name}={json.dumps(value)}" for name, value in labels.items()]
    return (
        f"# For {loaded.name}, by `python -m scripts.image context`; not built where it was written.\n"
        f"FROM {base}@{digest}\n"
        f"COPY apply.pyz patches.json {FOLDER}/\n"
        f"RUN python3 {FOLDER}/apply.pyz {FOLDER}/patches.json\n"
        "LABEL \\\n" + " \\\n".join(lines) + "\n"
    )


def context(loaded: LoadedProfile, digest: str) -> dict[str, bytes]:
    """File in the build's folder -> contents."""
    told = json.dumps(patches.of(loaded), indent=1) + "\n"
    texts = {"Dockerfile": dockerfile(loaded, digest).encode(), "patches.json": told.encode()}
    return {**texts, "apply.pyz": pack.program("patch_image").archive}


def write(files: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in files.items():
        (folder / name).write_bytes(contents)


def check(loaded: LoadedProfile, find: Callable[[dict[str, Any], str], Path | None]) -> list[str]:
    """Do the profile's patches apply to the released files? One line per patch; a `PatchError` names the place."""
    lines = []
    for patch in patches.of(loaded):
        changed = patching.prepare([patch], lambda package, patch=patch: find(patch, package))
        lines.append(f"{patch['id']}: {len(changed)} files of {patch['package']}")
    return lines
