"""`images COMMAND`: JSON in on standard input, JSON out, so that a program can ask.

`look`, `start`, `status` and `hold` are for one image that is pulled, `release` for all that were held; `held`,
`receive`, `import`, `importing` and `settle` for archives that are brought; `judge`, `build`, `building`, `publish` and
`built` for one that is built here.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from sparkloom.onnode import asked as program
from sparkloom.onnode.images import build, reference, sharing
from sparkloom.onnode.images.build import Building
from sparkloom.onnode.images.pull import Import, Pull, begun, forgotten
from sparkloom.onnode.images.runtime import PINNED, SERVES, ImageError, Runtime


def named(*names: str) -> list[str]:
    """containerd's filters for these names."""
    return [f"name=={json.dumps(name)}" for name in names]


def look(runtime: Runtime, image: str) -> dict[str, Any]:
    """What the tag means here, and under which digests the image can be named."""
    wanted = reference.parse(image)
    found = runtime.digests(*named(wanted.tagged), f"name~={json.dumps('^' + re.escape(wanted.name) + '@')}")
    tag = found.pop(wanted.tagged, "")
    return {"tag": tag, "digests": sorted({*found.values(), *([tag] if tag else [])})}


def hold(runtime: Runtime, image: str, digest: str, retag: bool, serves: bool = False) -> dict[str, Any]:
    """The image can be named by its digest: an imported archive brings a tag only, and the kubelet asks by digest.
    `serves`: for a group, and no longer than one has it; what was pinned for another reason stays."""
    wanted, others = reference.parse(image), runtime.labelled(PINNED).items() - runtime.labelled(SERVES).items()
    found = runtime.digests(*named(wanted.tagged, wanted.at(digest)), f"target.digest=={digest}")
    source = next((name for name, held in found.items() if held == digest), "")
    if not source:
        raise ImageError(f"{wanted.at(digest)} is not here")
    targets = [wanted.at(digest)] + ([wanted.tagged] if retag else [])
    changed = [target for target in targets if found.get(target) != digest]
    for target in changed:
        runtime.run("images", "tag", "--force", source, target)
    # The kubelet removes unused images when a disk fills; one that serves, or could not be had again, stays.
    for target in targets:
        more = [SERVES] if serves and (target, digest) not in others else []
        runtime.run("images", "label", target, PINNED, *more)
    return {"changed": changed}


def release(asked: dict[str, Any]) -> dict[str, Any]:
    """Of what was held for groups, all that none has: the kubelet may tidy it away when a disk fills."""
    try:
        runtime = here(asked)
    except ImageError:
        return {"changed": []}
    kept = {image.rpartition("@")[2] for image in asked["images"]}
    changed = [name for name, digest in runtime.labelled(SERVES).items() if not {name, digest} & kept]
    for name in changed:
        runtime.run("images", "label", name, *(f"{label.partition('=')[0]}=" for label in (PINNED, SERVES)))
    return {"changed": changed}


def held(asked: dict[str, Any]) -> dict[str, Any]:
    """Which of several images are here with all that is in them; none where no containerd runs yet."""
    try:
        runtime = Runtime.here(asked["places"])
    except ImageError:
        return {"machine": platform.machine(), "images": {}}
    whole, found = runtime.whole(), {image: look(runtime, image) for image in asked["images"]}
    here = {
        image: {"tag": told["tag"] if told["tag"] in whole else "", "digests": sorted(whole & set(told["digests"]))}
        for image, told in found.items()
    }
    return {"machine": platform.machine(), "images": here}


def settle(runtime: Runtime, file: Path, images: list[dict[str, Any]]) -> dict[str, Any]:
    """After an import: the names that pods use, kept from the kubelet's tidying; the file goes."""
    for one in images:
        image, wanted = str(one["image"]), reference.parse(str(one["image"]))
        digest = str(one["digest"]) or look(runtime, image)["tag"]
        if not digest:
            raise ImageError(f"{file.name} was imported, and {wanted.tagged} is not in it")
        sharing.share(runtime, wanted.name, digest)  # before it has the name that the other nodes are told of
        hold(runtime, image, digest, retag=True)
    forgotten(runtime, file)
    return {"changed": True}


def built(asked: dict[str, Any]) -> dict[str, Any]:
    runtime = here(asked)
    found = look(runtime, asked["image"])
    return {**found, "made_of": build.made_of(runtime, found["tag"])}


def here(asked: dict[str, Any]) -> Runtime:
    return Runtime.here(asked["places"])


def pull(asked: dict[str, Any]) -> Pull:
    return Pull(here(asked), asked["reference"])


def importing(asked: dict[str, Any]) -> Import:
    return Import(here(asked), asked["file"])


COMMANDS: program.Commands = {
    "look": lambda asked: look(here(asked), asked["image"]),
    "start": lambda asked: pull(asked).start(),
    "status": lambda asked: pull(asked).status(),
    "hold": lambda asked: hold(
        here(asked), asked["image"], asked["digest"], bool(asked.get("retag")), bool(asked.get("serves"))
    ),
    "held": held,
    "release": release,
    "receive": lambda asked: begun(Path(asked["file"]), int(asked["size"])),
    "import": lambda asked: importing(asked).start(),
    "importing": lambda asked: importing(asked).status(),
    "settle": lambda asked: settle(here(asked), Path(asked["file"]), asked["images"]),
    "judge": build.judge,
    "build": lambda asked: Building(asked).start(),
    "building": lambda asked: Building(asked).status(),
    "publish": build.publish,
    "built": built,
}


def refusal(error: Exception) -> str:
    if isinstance(error, ImageError):
        return str(error)
    known = isinstance(error, (OSError, subprocess.TimeoutExpired))
    return f"the node's containerd did not answer: {error}" if known else ""


def main(words: list[str]) -> int:
    return program.run("images", words, COMMANDS, refusal)
