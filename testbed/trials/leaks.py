"""Where a secret must not show: every process, object, log and file that people or other programs read.

Real secrets are their own canaries: what is looked for is what the run used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from testbed.base.shell import run
from testbed.beds.rack import cluster

PAUSE_SECONDS = 0.2
# What a node keeps that programs and people read; Secrets that are mounted, and weights, are left out.
FOLDERS = ("/etc", "/root", "/run", "/tmp", "/var/log", "/var/lib/kubelet", "/var/lib/sparkloom", "/usr/local")
PASSED_OVER = ("rootfs", "kubernetes.io~secret", "kubernetes.io~projected", "blobs", "overlay2")


class Watch:
    """What processes carry while a run goes on, pods' and nodes' too: command lines of all, environments of those
    that live apart from us (ours is where a person puts a token)."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # text -> where it was seen first
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self.look()

    def look(self) -> None:
        ours = Path("/proc/self/ns/mnt").readlink()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended, or is a kernel's own
                name = (process / "comm").read_text().strip()
                self._keep(process / "cmdline", f"command line of {name}")
                if (process / "ns/mnt").readlink() != ours:
                    self._keep(process / "environ", f"environment of {name}")

    def _keep(self, file: Path, where: str) -> None:
        self.texts.setdefault(file.read_bytes().decode(errors="replace"), where)

    def hits(self, secrets: Sequence[str]) -> list[str]:
        return [where for text, where in self.texts.items() if found(text, secrets)]


def found(text: str, secrets: Sequence[str]) -> bool:
    if not all(len(secret) >= 16 for secret in secrets):
        raise ValueError("a secret this short is found everywhere")
    return any(secret in text for secret in secrets)


def in_files(container: str, secrets: Sequence[str]) -> list[str]:
    """Files of a node that hold one of the secrets. They come on standard input: no command line may hold them."""
    without = [f"--exclude-dir={name}" for name in PASSED_OVER]
    command = ["docker", "exec", "-i", container, "grep", "-rlsF", "-D", "skip", *without, "-f", "-", *FOLDERS]
    done = run(command, stdin="\n".join(secrets) + "\n", check=False)
    return [f"{container}: {line}" for line in done.stdout.splitlines() if not line.startswith("/proc")]


def in_folder(folder: Path, secrets: Sequence[str], *, but: Iterable[Path] = ()) -> list[str]:
    """Files here that hold one of the secrets, but for those that are meant to."""
    meant = {path.resolve() for path in but}
    files = [path for path in folder.rglob("*") if path.is_file() and path.resolve() not in meant]
    return [str(path) for path in files if found(path.read_bytes().decode(errors="replace"), secrets)]


def in_cluster(secrets: Sequence[str]) -> list[str]:
    """Objects of every kind but Secrets, and pods' logs."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    shown = [kind for kind in kinds if kind != "secrets"]
    places = [kind for kind in shown if found(cluster.kubectl("get", kind, "-A", "-o", "yaml"), secrets)]
    columns = "custom-columns=:.metadata.namespace,:.metadata.name"
    for line in cluster.kubectl("get", "pods", "-A", "--no-headers", "-o", columns).splitlines():
        space, pod = line.split()
        log = cluster.kubectl("logs", "-n", space, pod, "--all-containers", check=False)
        places += [f"log of {pod}"] if found(log, secrets) else []
    return places
