"""A command in the background, and one that pulls or imports an image: how far it is by containerd's own store.

It outlives the connection that began it, and a second run finds it at work. An archive that is brought lies in a folder
of root's until it is imported; its file's name bears its size and time, so that a run that was cut off goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.images.runtime import ImageError, Runtime
from sparkloom.onnode.rank import procs

RUN = Path("/run/sparkloom/images")
# The command's words are "$@"; its end is told by a file that is whole or not there.
YOUNG = 3.0  # seconds in which a process may not show its words yet
KEEP = 'cd "$0" && "$@" >log 2>&1 </dev/null; echo $? >code.new; mv code.new code'


class Background:
    """Known by a key: whoever asks for the same is told of the one that is at work."""

    what = "the command"

    def __init__(self, key: str, run: Path = RUN) -> None:
        self.folder = run / hashlib.sha256(key.encode()).hexdigest()[:16]

    def begin(self, words: Sequence[str], *stale: str) -> None:
        """`stale`: what else an earlier one left that this one must not be told by."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("code", "log", *stale):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "begun").write_text(str(time.time()))
        quiet = subprocess.DEVNULL
        whole = ["sh", "-c", KEEP, str(self.folder), *words]
        process = subprocess.Popen(whole, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        (self.folder / "pid").write_text(str(process.pid))

    def number(self, name: str) -> float | None:
        """When it has `begun`, or the exit `code` with which it ended."""
        try:
            return float((self.folder / name).read_text())
        except (OSError, ValueError):
            return None

    def working(self, begun: float) -> bool:
        """Asked before its code: who ends meanwhile has told it by then."""
        alive = self._alive()
        return self.number("code") is None and (alive or time.time() - begun < YOUNG)

    def _alive(self) -> bool:
        """Whether that process is ours, not a later one with the same number."""
        try:
            one = procs.look(int((self.folder / "pid").read_text()))
        except (OSError, ValueError):
            return False
        return one is not None and one.lives and str(self.folder) in one.title

    def log_lines(self) -> list[str]:
        """The lines that it wrote."""
        try:
            return (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            return []

    def _cause(self) -> str:
        lines = self.log_lines()
        return lines[-1][-600:] if lines else f"{self.what} ended without a word (killed?); run this again"


LARGEST = 1_000_000  # bytes of a manifest; layers are larger, or small and no JSON


@dataclass(frozen=True)
class Progress:
    have: int = 0
    total: int = 0  # 0: the manifest is not there yet
    files_done: int = 0  # layers that are here
    files: int = 0


def progress(content: Path, since: float) -> Progress:
    """Of the largest image whose manifest came since then."""
    found = [_measured(content, manifest) for manifest in _manifests(content / "blobs" / "sha256", since)]
    return max(found, key=lambda one: one.total, default=Progress())


def _manifests(blobs: Path, since: float) -> Iterator[list[dict[str, Any]]]:
    for path in blobs.glob("*"):
        try:
            facts = path.stat()
            if facts.st_mtime < since or facts.st_size > LARGEST:
                continue
            layers = json.loads(path.read_bytes()).get("layers")
        except (OSError, ValueError, AttributeError):
            continue  # gone meanwhile, or something else
        if isinstance(layers, list):
            yield [layer for layer in layers if isinstance(layer, dict) and "digest" in layer]


def _measured(content: Path, layers: list[dict[str, Any]]) -> Progress:
    moving = dict(_moving(content / "ingest"))
    have = done = 0
    for layer in layers:
        size, digest = int(layer.get("size", 0)), str(layer["digest"])
        if (content / "blobs" / digest.replace(":", "/")).exists():
            have, done = have + size, done + 1
        else:
            have += min(moving.get(digest, 0), size)
    return Progress(have, sum(int(layer.get("size", 0)) for layer in layers), done, len(layers))


def _moving(ingest: Path) -> Iterator[tuple[str, int]]:
    """Digest of each layer on its way, and its bytes so far."""
    for folder in ingest.glob("*"):
        with contextlib.suppress(OSError):
            name = (folder / "ref").read_text().strip()
            yield "sha256:" + name.rpartition("sha256:")[2], (folder / "data").stat().st_size


class Pull(Background):
    what = "the pull"
    waiting = "asking for it"  # before the manifest is there

    def __init__(self, runtime: Runtime, reference: str, run: Path = RUN) -> None:
        super().__init__(reference, run)
        self.runtime, self.reference = runtime, reference

    def words(self) -> list[str]:
        return self.runtime.pulling(self.reference)

    def start(self) -> dict[str, Any]:
        if not self._alive():
            self.begin(self.words(), "first")
        return self.status()

    def status(self) -> dict[str, Any]:
        """As the transfer of weights tells it: state, bytes, layers, rate, cause."""
        begun = self.number("begun")
        if begun is None:
            return self._report("none", Progress(), 0.0, "")
        working = self.working(begun)
        seen = progress(self.runtime.content, begun - 1)
        first = self._first(seen)
        passed = time.time() - first["time"]
        rate = (seen.have - first["have"]) / passed if passed > 0 else 0.0
        if working:
            # what is asked for before the manifest is there, and what follows the last byte, has no bytes to count
            asking = self.waiting if not seen.total else f"unpacking {seen.files} layers"
            return self._report("moving" if seen.have < seen.total else asking, seen, rate, "", first["have"])
        if self.number("code") == 0:
            return self._report("done", seen, rate, "", first["have"])
        return self._report("failed", seen, rate, self._cause(), first["have"])

    def _report(self, state: str, seen: Progress, rate: float, cause: str, before: float = 0) -> dict[str, Any]:
        return {**asdict(seen), "state": state, "moved": int(seen.have - before), "rate": rate, "cause": cause}

    def _first(self, seen: Progress) -> dict[str, float]:
        """What was there when the manifest was first seen: layers of an older image count, but were not moved."""
        file = self.folder / "first"
        if known := json_text.kept(file):
            return known
        first = {"time": time.time(), "have": seen.have}
        if seen.total:
            file.write_text(json.dumps(first))
        return first


MADE_UP = 'name~="^import-[0-9]{4}-[0-9]{2}-[0-9]{2}[@:]"'  # by ctr, for what has no name in an archive


class Import(Pull):
    """In the background as a pull is; what is pulled is a file here."""

    waiting = "importing"

    def words(self) -> list[str]:
        return self.runtime.importing(self.reference)


def begun(file: Path, size: int) -> dict[str, Any]:
    """How much of it is here. What it will need must be free: the rest of it, its layers, and these unpacked."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    have = file.stat().st_size if file.exists() else 0
    if have > size:
        file.unlink()
        have = 0
    free, wanted = shutil.disk_usage(file.parent).free, size - have + 2 * size
    if free < wanted:
        raise ImageError(
            f"{file.parent} has {free / 1e9:.1f} GB free, {file.name} needs {wanted / 1e9:.1f} GB (the file, its "
            "layers and these unpacked); make room there"
        )
    return {"have": have}


def forgotten(runtime: Runtime, file: Path) -> None:
    """The file, and the names that ctr made up for what was in it."""
    if names := runtime.digests(MADE_UP):
        runtime.run("images", "rm", *names)
    file.unlink(missing_ok=True)
