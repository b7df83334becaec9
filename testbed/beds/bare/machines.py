"""Making, finding and removing bare machines: the rack's node image without kind, on a network of their own."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import docker, names, store
from testbed.base.shell import RackError, ok, out, run
from testbed.base.steps import Say
from testbed.beds import person
from testbed.make import k3s, nodeimage, policy

NAME = "sparkloom-bare"  # inventories/bare names these containers and addresses
SUBNET = "10.198.77.0/24"  # private: K3s' nodes find each other's images at no address of RFC 2544
LABEL = f"sparkloom.bare={NAME}"
STATE = names.REPO / ".build" / "bare"
ARTIFACTS, PINS, TOOLS = STATE / "artifacts", STATE / "pins.json", STATE / "tools"
# what a machine before Kubernetes does not run; the rack's stand-in for rails has none to show here
OFF = ("kubelet", "containerd", "sparkloom-gpu", "sparkloom-testbed")
BOOT_SECONDS = 60


@dataclass(frozen=True)
class Machine:
    name: str
    address: str
    spark: bool = True

    @property
    def container(self) -> str:
        return f"{NAME}-{self.name}"


def machines(sparks: int) -> list[Machine]:
    """Sparks, and one machine beside them."""
    rows = [Machine(f"spark{number}", f"10.198.77.{10 + number}") for number in range(1, sparks + 1)]
    return [*rows, Machine("box1", "10.198.77.21", spark=False)]


def there() -> dict[str, str]:
    """{container: state}."""
    text = out(["docker", "ps", "-a", "--filter", f"label={LABEL}", "--format", "{{.Names}}\t{{.State}}"], check=False)
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def up(sparks: int, say: Say) -> None:
    wanted = machines(sparks)
    if not ok(["docker", "network", "inspect", NAME]):
        run(["docker", "network", "create", f"--subnet={SUBNET}", "--label", LABEL, NAME])
    present = there()
    missing = [machine for machine in wanted if present.get(machine.container) != "running"]
    _lay_out_tools()
    say(f"{len(missing)} machines to start, image {nodeimage.tag()}")
    with ThreadPoolExecutor(max_workers=len(wanted)) as pool:
        list(pool.map(_create, missing))
        list(pool.map(_wait, wanted))
    names.forget_machines(names.REPO / "inventories/bare")
    person.introduce(STATE / "ssh", {machine.container: machine.container for machine in wanted})
    program = k3s.chosen()
    say(f"the folder of release files; K3s is {program.words}")
    store.write_json(PINS, k3s.make(ARTIFACTS, wanted[0].container, program))


def _create(machine: Machine) -> None:
    """As kind runs its nodes, but what K3s keeps lies on a volume of its own: containerd needs a real file system."""
    run(["docker", "rm", "--force", "--volumes", machine.container], check=False)
    lenient = ["--privileged", "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"]
    mounts = ["--tmpfs=/tmp", "--tmpfs=/run", "--volume=/lib/modules:/lib/modules:ro"]
    own = ["--mount=type=volume,dst=/var/lib/rancher,volume-nocopy", "--mount=type=volume,dst=/var/lib/kubelet"]
    place = [f"--hostname={machine.name}", f"--network={NAME}", f"--ip={machine.address}", f"--label={LABEL}"]
    run(["docker", "create", f"--name={machine.container}", "--tty", *lenient, *mounts, *own, *place, nodeimage.tag()])
    _mask(machine)
    run(["docker", "cp", f"{TOOLS}/.", f"{machine.container}:/"])
    _under_control_groups_of_version_1(machine)
    run(["docker", "start", machine.container])


def _mask(machine: Machine) -> None:
    """Before the first boot: units that point to nothing, and no GB10's mark on a machine that is none."""
    folder = STATE / "mask"
    folder.mkdir(parents=True, exist_ok=True)
    for unit in OFF:
        link = folder / f"{unit}.service"
        with contextlib.suppress(FileExistsError):  # the machines are made side by side
            link.symlink_to("/dev/null")
    run(["docker", "cp", f"{folder}/.", f"{machine.container}:/etc/systemd/system/"])


def _lay_out_tools() -> None:
    """What K3s' release carries beside its program and ours cannot: without ipset no network policy holds."""
    store.remove_tree(TOOLS)
    (TOOLS / "usr/local/sbin").mkdir(parents=True)
    if policy.tree().exists():
        home = TOOLS / policy.HOME.lstrip("/")
        shutil.copytree(policy.tree(), home, ignore=shutil.ignore_patterns("kube-router"))
        (TOOLS / "usr/local/sbin/ipset").symlink_to(f"{policy.HOME}/ipset")


def _under_control_groups_of_version_1(machine: Machine) -> None:
    """There K3s under systemd ends its pods at each restart, unless it does not know of systemd. No Spark has them."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return
    folder = STATE / "default"
    folder.mkdir(parents=True, exist_ok=True)
    for service in ("k3s", "k3s-agent"):
        (folder / service).write_text("INVOCATION_ID=\n")
    run(["docker", "cp", f"{folder}/.", f"{machine.container}:/etc/default/"])


def _wait(machine: Machine) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline:
        state = out(["docker", "exec", machine.container, "systemctl", "is-system-running"], check=False)
        if state in ("running", "degraded"):
            if not machine.spark:
                run(["docker", "exec", machine.container, "rm", "-f", "/etc/dgx-release"])
            return
        time.sleep(0.5)
    raise RackError(f"{machine.container} did not boot in {BOOT_SECONDS} s: `docker logs {machine.container}`")


def down(say: Say) -> None:
    present = there()
    say(f"removing {len(present)} machines, their volumes and their network")
    if present:
        run(["docker", "rm", "--force", "--volumes", *present])
    run(["docker", "network", "rm", NAME], check=False)
    store.remove_tree(STATE)


def status() -> dict[str, Any]:
    states = there() if docker.answers() else {}
    rows = {}
    for container, state in sorted(states.items()):
        units = out(["docker", "exec", container, "systemctl", "is-active", "k3s", "k3s-agent"], check=False).split()
        rows[container.removeprefix(f"{NAME}-")] = {
            "container": container,
            "state": state,
            "k3s": dict(zip(("k3s", "k3s-agent"), units, strict=False)),
        }
    pins = json.loads(PINS.read_text()) if PINS.exists() else {}
    return {"up": bool(rows) and set(states.values()) == {"running"}, "machines": rows, "pins": pins}
