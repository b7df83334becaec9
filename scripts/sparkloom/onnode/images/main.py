"""`images COMMAND`: JSON in on standard input, JSON out, so that a program can ask.

`look`, `start`, `status` and `hold` are for one image that is pulled; `held`, `receive`, `import`, `importing` and
`settle` for archives that are brought; `judge`, `build`, `building`, `publish` and `built` for one that is built here.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkloom.onnode.images import archive, build, reference, sharing
from sparkloom.onnode.images.build import Building
from sparkloom.onnode.images.pull import Pull
from sparkloom.onnode.images.runtime import ImageError, Runtime

BUILDS = ("judge", "build", "building", "publish", "built")
COMMANDS = ("look", "start", "status", "hold", "held", "receive", "import", "importing", "settle", *BUILDS)


def named(*names: str) -> list[str]:
    """containerd's filters for these names."""
    return [f"name=={json.dumps(name)}" for name in names]


def look(runtime: Runtime, image: str) -> dict[str, Any]:
    """What the tag means here, and under which digests the image can be named."""
    wanted = reference.parse(image)
    found = runtime.digests(*named(wanted.tagged), f"name~={json.dumps('^' + re.escape(wanted.name) + '@')}")
    tag = found.pop(wanted.tagged, "")
    return {"tag": tag, "digests": sorted({*found.values(), *([tag] if tag else [])})}


def hold(runtime: Runtime, image: str, digest: str, retag: bool) -> dict[str, Any]:
    """The image can be named by its digest: an imported archive brings a tag only, and the kubelet asks by digest."""
    wanted = reference.parse(image)
    found = runtime.digests(*named(wanted.tagged, wanted.at(digest)), f"target.digest=={digest}")
    source = next((name for name, held in found.items() if held == digest), "")
    if not source:
        raise ImageError(f"{wanted.at(digest)} is not here")
    targets = [wanted.at(digest)] + ([wanted.tagged] if retag else [])
    changed = [target for target in targets if found.get(target) != digest]
    for target in changed:
        runtime.tag(source, target)
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
        for name in (wanted.at(digest), wanted.tagged):
            runtime.pin(name)
    archive.forgotten(runtime, file)
    return {"changed": True}


def _brought(command: str, asked: dict[str, Any]) -> dict[str, Any]:
    file = Path(asked["file"])
    if command == "receive":
        return archive.begun(file, int(asked["size"]))
    runtime = Runtime.here(asked["places"])
    if command == "settle":
        return settle(runtime, file, asked["images"])
    importing = archive.Import(runtime, str(file))
    return importing.start() if command == "import" else importing.status()


def _built(command: str, asked: dict[str, Any]) -> dict[str, Any]:
    if command == "judge":
        return build.judge(asked)
    if command == "publish":
        return build.publish(asked)
    if command == "built":
        runtime = Runtime.here(asked["places"])
        found = look(runtime, asked["image"])
        return {**found, "made_of": build.made_of(runtime, found["tag"])}
    return Building(asked).start() if command == "build" else Building(asked).status()


def answer(command: str, asked: dict[str, Any]) -> dict[str, Any]:
    if command in BUILDS:
        return _built(command, asked)
    if command == "held":
        return held(asked)
    if command in ("receive", "import", "importing", "settle"):
        return _brought(command, asked)
    runtime = Runtime.here(asked["places"])
    if command == "look":
        return look(runtime, asked["image"])
    if command == "hold":
        return hold(runtime, asked["image"], asked["digest"], bool(asked.get("retag")))
    pull = Pull(runtime, asked["reference"])
    return pull.start() if command == "start" else pull.status()


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0] not in COMMANDS:
        print(f"usage: images {'|'.join(COMMANDS)}  (JSON on standard input)", file=sys.stderr)
        return 2
    try:
        print(json.dumps({"answer": answer(words[0], json.load(sys.stdin))}))
    except ImageError as error:
        print(json.dumps({"error": str(error)}))
        return 1
    except (OSError, subprocess.TimeoutExpired) as error:
        print(json.dumps({"error": f"the node's containerd did not answer: {error}"}))
        return 1
    return 0
