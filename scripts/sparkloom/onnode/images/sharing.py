"""What an import leaves out and a pull says: of which repository each part of an image is.

K3s' registry between the nodes gives away only parts that say so, and only images that have a name with a digest
(k3s-io/k3s pull request 13221; before, what `ctr images import` brought was had by no other node).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.images.runtime import Runtime

SOURCE = "containerd.io/distribution.source."


def share(runtime: Runtime, name: str, digest: str) -> list[str]:
    """Labels every part that is here; which were lacking. One part may be of several images of a registry."""
    registry, _, repository = name.partition("/")
    known = _labels(runtime, SOURCE + registry)
    changed = []
    for part in dict.fromkeys(parts(runtime, digest)):
        of = [one for one in known.get(part, "").split(",") if one]
        if part in known and repository not in of:
            runtime.run("content", "label", part, f"{SOURCE}{registry}={','.join([*of, repository])}")
            changed.append(part)
    return changed


def parts(runtime: Runtime, digest: str) -> Iterator[str]:
    """Index, manifests, configurations and layers, whether here or not."""
    yield digest
    told = blob(runtime, digest)
    for inner in told.get("manifests", []):
        yield from parts(runtime, str(inner["digest"]))
    for part in [*([told["config"]] if "layers" in told else []), *told.get("layers", [])]:
        yield str(part["digest"])


def blob(runtime: Runtime, digest: str) -> dict[str, Any]:
    """A manifest or a configuration out of containerd's store; empty where it is not here, or no JSON."""
    return json_text.kept(runtime.content / "blobs" / digest.replace(":", "/"))


def _labels(runtime: Runtime, key: str) -> dict[str, str]:
    """Digest -> its value of one label, of all that is here; empty where it has none."""
    found = {}
    for row in runtime.run("content", "ls").splitlines()[1:]:
        value = re.search(rf"(?:^|[\s,]){re.escape(key)}=(\S+?)(?=,[\w.-]+(?:/[\w.-]+)*=|\s|$)", row)
        found[row.split()[0]] = value[1] if value else ""
    return found
