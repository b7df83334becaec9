"""The node's containerd through its own tools: K3s', or the system's. No Docker is asked, none is needed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

SPACE = "k8s.io"  # containerd's namespace of all that Kubernetes runs
HOSTS = Path("/etc/containerd/certs.d")  # mirrors, where containerd itself is asked
SECONDS = 60.0
PINNED = "io.cri-containerd.pinned=pinned"
SERVES = "sparkloom.serves=true"  # beside it, where a group is the only reason
UNPACK = {".tar.zst": "zstd -dcq", ".tar.gz": "gzip -dc", ".tgz": "gzip -dc"}


class ImageError(Exception):
    """One sentence: what the node's runtime refused, and what to change."""


@dataclass(frozen=True)
class Runtime:
    """One containerd: `ctr` and `crictl` are the words that begin a command; crictl's may be empty."""

    ctr: tuple[str, ...]
    crictl: tuple[str, ...]
    content: Path

    @classmethod
    def here(cls, places: Sequence[Mapping[str, Any]]) -> Runtime:
        """The first that lives, of `{socket, program, root}`; `program` is one that has all tools in it, as K3s'."""
        for place in places:
            if not Path(place["socket"]).exists():
                continue
            inside = place.get("program", "")
            begins = [inside] if inside else []
            tools = {tool: [*begins, tool] for tool in ("ctr", "crictl") if which(inside or tool)}
            if "ctr" in tools:
                address = f"unix://{place['socket']}"
                asking = ["--runtime-endpoint", address, "--image-endpoint", address]
                return cls(
                    (*tools["ctr"], "--address", place["socket"], "--namespace", SPACE),
                    (*tools["crictl"], *asking) if "crictl" in tools else (),
                    Path(place["root"]) / "io.containerd.content.v1.content",
                )
        looked = ", ".join(str(place["socket"]) for place in places)
        raise ImageError(f"no containerd answers here ({looked}), or its program ctr is missing; is the cluster up?")

    def digests(self, *filters: str) -> dict[str, str]:
        """Reference -> digest of the images that one of the filters names."""
        rows = self.run("images", "ls", *filters).splitlines()[1:]
        words = [row.split() for row in rows]
        return {row[0]: row[2] for row in words if len(row) > 2 and row[2].startswith("sha256:")}

    def whole(self) -> set[str]:
        """Digests of images of which everything is here: an import that failed leaves the name of a part."""
        rows = (row.split() for row in self.run("images", "check").splitlines()[1:])
        return {row[2] for row in rows if len(row) > 3 and row[3] == "complete"}

    def labelled(self, label: str) -> dict[str, str]:
        """As `digests`, of those that bear it."""
        key, _, value = label.partition("=")
        return self.digests(f'labels."{key}"=={value}')

    def importing(self, file: str) -> list[str]:
        """The command that imports an archive; ctr's own reading of compressed ones depends on its release."""
        unpack = next((words for suffix, words in UNPACK.items() if file.endswith(suffix)), "cat")
        program = unpack.split()[0]
        if not which(program):
            raise ImageError(f"there is no {program} here to read {Path(file).name}; bring it as .tar or .tar.gz")
        return ["sh", "-c", f'{unpack} "$0" | "$@"', file, *self.ctr, "images", "import", "--digests", "-"]

    def run(self, *words: str) -> str:
        done = subprocess.run([*self.ctr, *words], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            told = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
            raise ImageError(f"ctr {' '.join(words[:2])}: {told[-1]}")
        return done.stdout

    def pods(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Sandboxes that are ready, by all of these labels; none where there is no crictl to ask."""
        if not self.crictl:
            return []
        chosen = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
        words = [*self.crictl, "pods", "--state", "ready", *chosen, "-o", "json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
        return json.loads(done.stdout or "{}").get("items") or []

    def pulling(self, reference: str) -> list[str]:
        """The command that pulls. crictl asks as the kubelet does: with its mirrors and its keys."""
        if self.crictl:
            return [*self.crictl, "pull", reference]
        hosts = ["--hosts-dir", str(HOSTS)] if HOSTS.is_dir() else []
        return [*self.ctr, "images", "pull", *hosts, reference]
