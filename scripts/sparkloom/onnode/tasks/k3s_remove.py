"""Take K3s off a machine.

Stops the units, ends what they left running, unmounts, removes links, firewall rules and files. The cluster's data
goes with it. Refuses a K3s that something else installed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import networkd
from sparkloom.onnode.host.read import completed, mounted
from sparkloom.onnode.rank import procs
from sparkloom.onnode.task import Data, Task

run = partial(completed, timeout=120)
UNITS = Path("/etc/systemd/system")
# Chains of kube-proxy, network policies, CNI plugins and flannel; a rule names its chain or its maker.
RULES = re.compile(r"KUBE-|CNI-|FLANNEL|flanneld|kube-router")


def shims(data: str) -> list[int]:
    """Processes that K3s' shims look after: containers go on when K3s stops, so they must be ended one by one."""
    known = [one for one in procs.every() if one.program.startswith(f"{data}/data/")]
    pids = [one.pid for one in known if "containerd-shim" in one.program]
    return sorted({*pids, *(one.pid for one in procs.below(*pids))})


def unmount(prefixes: list[Any]) -> list[Any]:
    """What is still mounted afterwards, with what umount said."""
    said = {}
    for point in mounted(prefixes):
        done = run("umount", "-l", point)
        said[point] = " ".join((done.stderr or done.stdout).split()) or f"umount ended with {done.returncode}"
    return [f"{point} ({said.get(point, 'mounted meanwhile')})" for point in dict.fromkeys(mounted(prefixes))]


def namespaces() -> list[Any]:
    return [name.split()[0] for name in run("ip", "netns", "list").stdout.splitlines() if name.startswith("cni-")]


def rules() -> Data:
    """{program that saves: rules of K3s in it}."""
    saved = {tool: run(f"{tool}-save").stdout for tool in ("iptables", "ip6tables")}
    return {tool: text for tool, text in saved.items() if RULES.search(text)}


def present(args: Mapping[str, Any]) -> list[str]:
    """All that there is to take away, as a person reads it."""
    things = [f"unit {name}" for name in args["services"] if (UNITS / f"{name}.service").exists()]
    things += [f"{len(pids)} processes of containers" for pids in [shims(args["data"])] if pids]
    things += [f"mount {point}" for point in mounted(args["mounts"])]
    things += [f"network namespace {name}" for name in namespaces()] if things else []
    things += [f"link {name}" for name in args["links"] if Path(f"/sys/class/net/{name}").exists()]
    things += [f"{tool} rules" for tool in rules()] if things else []
    return things + [path for path in args["remove"] if not gone(Path(path))]


def gone(path: Path) -> bool:
    """A folder that is a mount of its own stays, empty."""
    return not os.path.lexists(path) or (path.is_mount() and not any(path.iterdir()))


def clear(path: Path) -> None:
    """Never through a mount: what lies there is somebody's volume, not K3s'."""
    if mounted([str(path)]):
        return
    if path.is_mount():
        for inside in path.iterdir():
            clear(inside)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def clear_empty(folders: list[Any]) -> None:
    for path in map(Path, folders):
        if path.is_dir() and not path.is_mount() and not any(path.iterdir()):
            path.rmdir()


def foreign(services: Sequence[str]) -> list[Any]:
    units = [UNITS / f"{name}.service" for name in services]
    return [str(unit) for unit in units if unit.exists() and "sparkloom" not in unit.read_text(errors="replace")]


def take(args: Mapping[str, Any]) -> list[str]:
    """What could not be unmounted; then no file is removed."""
    for name in args["services"]:
        run("systemctl", "disable", "--now", f"{name}.service")
        (UNITS / f"{name}.service").unlink(missing_ok=True)
    run("systemctl", "daemon-reload")
    until = time.monotonic() + 30
    while (pids := shims(args["data"])) and time.monotonic() < until:
        for pid in pids:
            procs.send(pid, signal.SIGKILL)
        time.sleep(0.2)
    if held := unmount(args["mounts"]):
        return held
    # A rail's function in one of them comes back to the host by itself.
    for name in namespaces():
        run("ip", "netns", "delete", name)
    for name in args["links"]:
        run("ip", "link", "delete", name)
    for tool, text in rules().items():
        kept = "\n".join(line for line in text.splitlines() if not RULES.search(line)) + "\n"
        run(f"{tool}-restore", stdin=kept)
    for path in args["remove"]:
        clear(Path(path))
    clear_empty(args["empty"])
    return []


def main(
    task: Task,
    services: Sequence[str],  # units that the role wrote
    data: Path,  # K3s' own folder; processes of programs below it are its
    mounts: Sequence[str],  # below these everything is unmounted
    links: Sequence[str],  # network links that K3s made
    remove: Sequence[str],  # files and folders
    empty: Sequence[str],  # folders that go when nothing is left in them
) -> None:
    args = task.params
    others = foreign(services)
    if others:
        task.fail_json(
            msg=f"found {', '.join(others)}, which sparkloom did not write; expected none. Remove that K3s by its own "
            "uninstaller, or take it over first (k3s_adopt: true)"
        )
    before = present(args)
    if before and not task.check_mode:
        networkd.hold(task)
        if held := take(args):
            task.fail_json(
                msg=f"still mounted: {'; '.join(held)}; expected nothing below what is removed. K3s was stopped, no "
                "file was removed; unmount it by hand and run this again"
            )
        left = present(args)
        if left:
            task.fail_json(msg=f"could not be taken away: {'; '.join(left)}; reboot the machine and run this again")
    diff = {"before": "".join(f"{line}\n" for line in before), "after": "", "before_header": "K3s"}
    task.exit_json(changed=bool(before), removed=before, diff=diff)
