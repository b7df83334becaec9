"""A container by NVIDIA's own runtime over the machine's own root, as containerd would ask for it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.beds.gpu import place

PODS = Path("/run/sparkloom-pods")
PATH = "/opt/torch/.venv/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USUAL = (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
)  # fmt: skip
NUMBERS = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
    "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_CHROOT": 18, "SYS_PTRACE": 19,
    "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_RESOURCE": 24, "MKNOD": 27, "AUDIT_WRITE": 29, "SETFCAP": 31,
}  # fmt: skip


def capabilities(security: Mapping[str, Any]) -> list[str]:
    """What a pod's securityContext asks for, as far as this machine has it to give."""
    asked = set(NUMBERS) if security.get("privileged") else set(USUAL)
    told = security.get("capabilities", {})
    asked = (set() if "ALL" in told.get("drop", ()) else asked) | set(told.get("add", ()))
    status = Path("/proc/self/status").read_text().split("CapBnd:")[1].split()[0]
    return sorted(f"CAP_{name}" for name in asked if int(status, 16) >> NUMBERS[name] & 1)


@dataclass
class Container:
    name: str
    args: list[str]
    env: dict[str, str] = field(default_factory=dict)
    gpu: str = "all"  # NVIDIA_VISIBLE_DEVICES
    security: dict[str, Any] = field(default_factory=dict)
    binds: Iterable[tuple[Path, str, bool]] = ()  # from, to, whether it is only read
    netns: str = ""
    hostname: str = "pod"
    shm: str = "1g"
    runtime: str = "nvidia-container-runtime"

    @property
    def folder(self) -> Path:
        return PODS / self.name

    @property
    def log(self) -> Path:
        return place.OUT / f"pod-{self.name}.log"

    def _root(self) -> None:
        PODS.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(PODS):  # an overlay's upper folder may lie on no overlay
            place.done(["mount", "-t", "tmpfs", "-o", "size=20g", "pods", PODS])
        for part in ("up", "work", "root"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        if os.path.ismount(self.folder / "root"):
            return
        above = f"lowerdir=/,upperdir={self.folder}/up,workdir={self.folder}/work"
        code, said = place.done(["mount", "-t", "overlay", "-o", above, f"pod-{self.name}", self.folder / "root"])
        assert code == 0, said

    def spec(self) -> dict[str, Any]:
        have, privileged = capabilities(self.security), bool(self.security.get("privileged"))
        plain = ["nosuid", "noexec", "nodev"]
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64m"]},
            {
                "destination": "/dev/pts",
                "type": "devpts",
                "source": "devpts",
                "options": ["newinstance", "ptmxmode=0666"],
            },
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777", f"size={self.shm}"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*plain, "ro"]},
        ]
        for source, target, read in self.binds:
            options = ["rbind", "ro" if read else "rw"]
            mounts.append({"destination": target, "type": "bind", "source": str(source), "options": options})
        told = {"PATH": PATH, "HOME": "/root", "NVIDIA_VISIBLE_DEVICES": self.gpu, **self.env}
        told.setdefault("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")
        spaces = [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]
        network = {"type": "network", **({"path": self.netns} if self.netns else {})}
        return {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False, "user": {"uid": 0, "gid": 0}, "args": self.args, "cwd": "/", "rlimits": [],
                "env": [f"{name}={value}" for name, value in told.items()],
                "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), have),
                "noNewPrivileges": self.security.get("allowPrivilegeEscalation") is False,
            },
            "root": {"path": str(self.folder / "root"), "readonly": False},
            "hostname": self.hostname,
            "mounts": mounts,
            "linux": {
                "cgroupsPath": f"/sparkloom/{self.name}", "namespaces": [*spaces, network],
                "resources": {"devices": [{"allow": privileged, "access": "rwm"}]},
            },
        }  # fmt: skip

    def start(self) -> None:
        """`create` and `start`: NVIDIA's runtime changes nothing of a `run`."""
        self._root()
        place.OUT.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.json").write_text(json.dumps(self.spec()))
        self.id = f"{self.name}-{int(time.time() * 10) % 1000000}"
        script = (
            f"{self.runtime} create --pid-file pid {self.id} </dev/null && runc start {self.id} || exit 99; "
            f"P=$(cat pid); while kill -0 $P 2>/dev/null; do sleep 0.1; done; runc delete -f {self.id}"
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", script], cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def ended(self, seconds: float = 60) -> str:
        """All that it said, once it is over."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.said()

    def stop(self, patience: float = 30) -> float:
        """TERM; the seconds until it was gone, and KILL where it is not."""
        begun = time.monotonic()
        place.done(["runc", "kill", self.id, "TERM"])
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            place.done(["runc", "delete", "-f", self.id])
        return time.monotonic() - begun


def once(name: str, script: str, **told: Any) -> str:
    """What a shell in a container says."""
    one = Container(name, ["sh", "-c", script], **told)
    one.log.unlink(missing_ok=True)
    one.start()
    return one.ended()
