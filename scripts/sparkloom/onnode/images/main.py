"""`images look|start|status|hold`: JSON in on standard input, JSON out, so that a program can ask."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from sparkloom.onnode.images import reference
from sparkloom.onnode.images.pull import Pull
from sparkloom.onnode.images.runtime import ImageError, Runtime

COMMANDS = ("look", "start", "status", "hold")


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


def answer(command: str, asked: dict[str, Any]) -> dict[str, Any]:
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
