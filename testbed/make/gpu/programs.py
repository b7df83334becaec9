"""NVIDIA's own runtime, its hook and its tool for CDI, the device plugin; runc and ip with their libraries."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from testbed.base import machine, store
from testbed.base.shell import out, run
from testbed.base.steps import Say
from testbed.make import golang
from testbed.make.golang import Module

TOOLKIT = Module(
    "github.com/NVIDIA/nvidia-container-toolkit", "v1.20.2", "h1:ndvx+2v4c8HmRf8A5aONf1+sE32jNDZ7qnIaBEAN5i8="
)
PLUGIN = Module("github.com/NVIDIA/k8s-device-plugin", "v0.18.2", "h1:aV+9UPJBlNF949hnLdDDgypwPVww3b0L6aPJDmU+3kk=")
COMMANDS = {TOOLKIT: ("nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime"), PLUGIN: ("nvidia-device-plugin",)}
SYSTEM = {"runc": "runc", "ip": "iproute2"}  # and the packages that bring them
# NVML's own bindings load the driver when they run: what is missing until then is no error.
LATE = "-Wl,--unresolved-symbols=ignore-in-object-files"


def build(work: Path, say: Say) -> None:
    """`bin` and, of the two that are no static programs, `lib`."""
    go, own = golang.find(say), work / "go"
    env = {
        **golang.environment(go), "CGO_ENABLED": "1", "CGO_LDFLAGS": LATE,
        "GOFLAGS": "-mod=mod -buildvcs=false -modcacherw",
        # not the rack's, which removes its caches when all of its own is built
        "GOPATH": str(own), "GOCACHE": str(own / "build"),
    }  # fmt: skip
    for module, commands in COMMANDS.items():
        say(f"building {', '.join(commands)} {module.version}")
        source = module.copy(go, env, _scratch(work) / module.path.rpartition("/")[2])
        named = f"-X {module.path}/internal/info.version={module.version.removeprefix('v')}"  # which our CDI task reads
        flags = ["-trimpath", "-p", "1", f"-ldflags=-s -w {named}", "-o", f"{work / 'bin'}/"]
        run([go, "build", *flags, *(f"./cmd/{name}" for name in commands)], env=env, cwd=source, timeout=3600)
    for folder in (_scratch(work), own):
        store.remove_tree(folder)
    for name, package in SYSTEM.items():
        if not shutil.which(name):
            machine.apt_install([package], say)
        program = Path(shutil.which(name) or name)
        shutil.copy2(program, work / "bin" / name)
        (work / "lib").mkdir(exist_ok=True)
        for library in re.findall(r"=> (/\S+)", out(["ldd", program], check=False)):
            if not re.match(r"lib(c|m|dl|pthread|resolv)\.so", Path(library).name):
                shutil.copy2(library, work / "lib" / Path(library).name)


def _scratch(work: Path) -> Path:
    folder = work / "source"
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").exists() or (folder / "go.mod").write_text("module scratch\n")
    return folder
