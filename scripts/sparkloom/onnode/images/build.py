"""An image that is built on this node: judged before, built in the background, kept as a file for the other nodes.

BuildKit does it: a buildkitd where one runs, else the one in Docker. Both keep what a build has done, so that one that
was cut off goes on there. Steps read the network only where the recipe downloads something.
"""

from __future__ import annotations

import base64
import re
import shlex
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from shutil import which
from typing import Any

from sparkloom.onnode.host import memory
from sparkloom.onnode.host.read import outcome, run
from sparkloom.onnode.images.pull import RUN, Background, Progress
from sparkloom.onnode.images.runtime import ImageError, Runtime
from sparkloom.onnode.images.sharing import blob
from sparkloom.onnode.now.labels import ENGINES
from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.layout import Entry, Snapshot, Store

ARCHIVE = "image.tar"
STEP = re.compile(r"^#\d+ (\[[^\]\n]+\] .*)|^(Step \d+/\d+ : .*)")
QUICK = 20.0  # seconds in which a builder says that it is there
LABEL = "sparkloom.recipe.sha256"


def tool() -> str:
    """`buildctl` or `docker`; refused with what is missing."""
    if which("buildctl") and _answers("buildctl", "debug", "workers"):
        return "buildctl"
    if not which("docker"):
        raise ImageError("neither Docker nor a buildkitd is here; DGX OS has Docker, and docker-buildx-plugin with it")
    if not _answers("docker", "buildx", "version"):
        raise ImageError("Docker has no BuildKit here (`docker buildx version`): apt-get install docker-buildx-plugin")
    if not _answers("docker", "info"):
        raise ImageError("Docker does not answer (`docker info`): systemctl start docker")
    return "docker"


def _answers(*words: str) -> bool:
    return not outcome(*words, timeout=QUICK)[1]


def commands(name: str, asked: dict[str, Any], context: Path, out: Path) -> list[list[str]]:
    """One after the other; the last leaves the archive beside its place."""
    image, platform = str(asked["image"]), str(asked["platform"])
    epoch = f"SOURCE_DATE_EPOCH={asked['epoch']}"
    if name == "buildctl":
        told = [f"platform={platform}", f"build-arg:{epoch}", *([] if asked["online"] else ["force-network-mode=none"])]
        options = [word for text in told for word in ("--opt", text)]
        folders = ["--local", f"context={context}", "--local", f"dockerfile={context}"]
        output = f"type=docker,name={image},dest={out},rewrite-timestamp=true"
        build = ["buildctl", "build", "--progress", "plain", "--frontend", "dockerfile.v0", *folders, *options]
        return [[*build, "--output", output]]
    network = [] if asked["online"] else ["--network", "none"]
    # no attestations: they bear the time, and the image alone is what a digest should name
    kinds = ["--provenance=false", "--sbom=false", "--load"]
    build = ["docker", "buildx", "build", "--progress", "plain", "--platform", platform, *kinds, *network]
    return [
        [*build, "--build-arg", epoch, "-t", image, str(context)],
        ["docker", "save", "-o", str(out), image],
    ]


class Building(Background):
    what = "the build"

    def __init__(self, asked: dict[str, Any], run: Path = RUN) -> None:
        super().__init__(f"build {asked['image']} {asked['identity']}", run)
        self.asked, self.work = asked, Path(asked["work"]) / str(asked["identity"])[:16]
        self.part = self.work / f"{ARCHIVE}.part"

    def start(self) -> dict[str, Any]:
        if not self._alive() and not (self.work / ARCHIVE).exists():
            context = self.work / "context"
            shutil.rmtree(context, ignore_errors=True)
            context.mkdir(parents=True, mode=0o700)
            for name, content in self.asked["context"].items():
                target = context / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(base64.b64decode(content))
            self.part.unlink(missing_ok=True)
            steps = [
                *commands(tool(), self.asked, context, self.part),
                ["mv", str(self.part), str(self.work / ARCHIVE)],
            ]
            self.begin(["sh", "-c", " && ".join(shlex.join(step) for step in steps)])
        return self.status()

    def status(self) -> dict[str, Any]:
        """In the words in which a pull is followed; a build has steps, no bytes to count."""
        told = {**asdict(Progress()), "moved": 0, "rate": 0.0, "cause": ""}
        if (self.work / ARCHIVE).exists():
            return {**told, "state": "done"}
        begun = self.number("begun")
        if begun is None:
            return {**told, "state": "none"}
        if self.working(begun):
            return {**told, "state": self._step()}
        return {**told, "state": "failed", "cause": f"{self._cause()} (all it said: {self.folder}/log)"}

    def _step(self) -> str:
        with suppress(FileNotFoundError):  # not there yet, or a whole archive by now
            return f"saves the image, {self.part.stat().st_size / 1e9:.1f} GB"
        steps = [found[1] or found[2] for line in self.log_lines() if (found := STEP.match(line))]
        return f"builds {steps[-1][:100]}" if steps else "begins to build"


def judge(asked: dict[str, Any]) -> dict[str, Any]:
    """What speaks against a build here, a sentence each, and what was looked at."""
    refusals: list[str] = []
    try:
        by = tool()
    except ImageError as error:
        by, refusals = "", [str(error)]
    free, available, serving = _free(by, Path(asked["work"])), memory.info().get("MemAvailable", 0.0), _engines(asked)
    # what a build that goes on needs, it has in part
    begun = Building(asked).number("begun") is not None
    for place, gb in () if begun else free.items():
        if gb < asked["disk_gb"]:
            refusals.append(f"{place} has {gb:.0f} GB free, the build needs {asked['disk_gb']:.0f} GB; make room there")
    if serving and not asked["beside"]:
        refusals.append(
            f"{', '.join(serving)} serves here, and a build takes of the same memory: build on a node that serves none "
            "(image_build_node), stop it, or say that it may be: -e image_build_beside=true"
        )
    if available < asked["memory_gib"]:
        refusals.append(
            f"{available:.0f} GiB of memory are available, the build needs {asked['memory_gib']:.0f} GiB; what holds "
            "the rest (an engine?) would be ended by the kernel, or end the build"
        )
    return {"tool": by, "free_gb": free, "memory_gib": available, "serving": serving, "refusals": refusals}


def _free(by: str, work: Path) -> dict[str, float]:
    """By place: ours, and where the builder keeps its layers when that is another disk."""
    places = [next(path for path in (work, *work.parents) if path.exists())]
    if by == "docker":
        told = run("docker", "info", "--format", "{{.DockerRootDir}}", timeout=QUICK)
        root = Path(told.strip() or "/var/lib/docker")
        places += [root] if root.exists() and root.stat().st_dev != places[0].stat().st_dev else []
    return {str(place): shutil.disk_usage(place).free / 1e9 for place in places}


def _engines(asked: dict[str, Any]) -> list[str]:
    """Pods of ours that serve on this node; none where no cluster runs."""
    try:
        runtime = Runtime.here(asked["places"])
    except ImageError:
        return []
    return sorted(str(item["metadata"]["name"]) for item in runtime.pods(ENGINES))


def publish(asked: dict[str, Any]) -> dict[str, Any]:
    """The archive becomes a verified snapshot of a store, from which the nodes hand it on as they do with weights."""
    one = Building(asked)
    archive = one.work / ARCHIVE
    sha256, size = check.sha256(archive), archive.stat().st_size
    store, entry = Store(asked["store"]), Entry(ARCHIVE, size, sha256, sha256)
    snapshot = Snapshot(asked["model"], sha256[:40], (entry,))
    target = store.blob(snapshot.id, entry)
    target.parent.mkdir(parents=True, exist_ok=True)
    archive.replace(target)
    store.publish(snapshot)
    shutil.rmtree(one.work, ignore_errors=True)
    shutil.rmtree(one.folder, ignore_errors=True)
    return {"revision": snapshot.commit, "size": size}


def made_of(runtime: Runtime, digest: str) -> str:
    """What an image's own label says of the recipe that it was built from; empty where it says nothing."""
    manifest = blob(runtime, digest)
    inner = manifest.get("manifests", [])
    if len(inner) == 1:
        manifest = blob(runtime, str(inner[0]["digest"]))
    labels = blob(runtime, str(manifest.get("config", {}).get("digest", ""))).get("config", {}).get("Labels") or {}
    return str(labels.get(LABEL, ""))
