"""One archive of images to one node: in pieces, a line every few seconds, then imported while somebody watches."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.base.amount import span
from sparkloom.launch.downloads import amount
from sparkloom.onnode.weights.names import StoreError
from sparkloom.render.k3s import paths
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote

PIECE = 32 << 20  # bytes that are in memory at once
Archive = Mapping[str, Any]  # as image_archives.decide gave it


@dataclass(frozen=True, slots=True)
class Transfer:
    remote: Remote
    places: Sequence[Mapping[str, Any]]  # where containerd may be
    seconds: float  # for one import
    say: follow.Say
    now: Callable[[], float] = time.monotonic

    def bring(self, archive: Archive) -> str:
        """What came of it, as one line. A second call after a break goes on where the first ended."""
        begun, file = self.now(), staged(archive)
        asked = {"places": list(self.places), "file": file}
        have = int(self.remote.ask("receive", {**asked, "size": archive["size"]})["have"])
        self._send(archive, file, have)
        self._import(str(archive["file"]), asked)
        self.remote.ask("settle", {**asked, "images": archive["images"]})
        moved, passed = amount(archive["size"] - have), span(self.now() - begun)
        named = ", ".join(str(image["image"]).partition("@")[0] for image in archive["images"])
        return f"{self.remote.node}: {named} from {Path(archive['file']).name}, {moved} in {passed}"

    def take(self, file: str, images: Sequence[Mapping[str, str]]) -> str:
        """An archive that lies on the node already; the file goes, too."""
        begun, asked = self.now(), {"places": list(self.places), "file": file}
        self._import(file, asked)
        self.remote.ask("settle", {**asked, "images": images})
        named = ", ".join(image["image"] for image in images)
        return f"{self.remote.node}: {named} imported in {span(self.now() - begun)}"

    def _send(self, archive: Archive, file: str, have: int) -> None:
        begun = shown = self.now()
        first, total = have, int(archive["size"])
        with Path(archive["file"]).open("rb") as stream:
            stream.seek(have)
            while piece := stream.read(PIECE):
                self.remote.append(file, piece)
                have += len(piece)
                if self.now() - shown >= follow.EVERY:
                    shown = self.now()
                    rate = (have - first) / (shown - begun)
                    self.say(follow.line(self.remote.node, {**MOVING, "have": have, "total": total, "rate": rate}))

    def _import(self, named: str, asked: Mapping[str, Any]) -> None:
        clock = follow.Clock(self.seconds, "k3s_images_seconds", "the import", self.now)
        self.remote.ask("import", asked)
        status = clock.watch(self.remote, "importing", asked, self.say)
        if status["state"] != "done":
            cause = status.get("cause") or "its import is gone; run this again"
            raise StoreError(f"{self.remote.node}: {named} cannot be imported: {cause}")


MOVING = {"state": "moving", "files_done": 0, "files": 1}


def staged(archive: Archive) -> str:
    """Where it lies on the node until it is imported: another file of the same name is another one."""
    name = Path(archive["file"]).name
    facts = f"{name} {archive['size']} {archive['when']}"
    return f"{paths.ARCHIVES}/{hashlib.sha256(facts.encode()).hexdigest()[:12]}-{name}"
