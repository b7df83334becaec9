"""The rack's command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from testbed.base import docker, locks, machine, names, steps, times
from testbed.base.shell import run
from testbed.beds.rack import (
    cgroups,
    checks,
    cluster,
    down,
    fabric,
    faults,
    hub,
    inventory,
    load,
    metrics_images,
    policies,
    router_image,
    servicelb,
    state,
    status,
    sysctls,
    tidy,
)
from testbed.face.console import Console, counted, enter, say, table
from testbed.make import binaries, engine_image, golang, images, nodeimage, policy, rootfs, source, traefik
from testbed.standins.hub import smollm

DESCRIPTION = (
    """The virtual rack: four GB10-shaped Kubernetes nodes (spark1..spark4) with two jumbo rails, on this machine."""
)
EPILOG = f"""Everything that takes long is kept in {names.CACHE} under a key of its inputs: nothing is built twice, and
a command that was stopped at any moment goes on where it was when it is typed again.
docs/real.md lists what is real."""


def built(lean: bool = False) -> list[steps.Step]:
    return [*nodes_made_of(lean), *finished(lean)]


def nodes_made_of(
    lean: bool, serving: Sequence[str] = (), images_beside: Sequence[steps.Step] = ()
) -> list[steps.Step]:
    """What nodes need; Traefik, which a test asks, and what is to be served go on beside the nodes' start."""
    chosen = source.steps(binaries.kubernetes_is_built)
    system, base = rootfs.steps()
    before = [*machine.steps(), *docker.steps(), *chosen, system]
    first, *built, _ = _go(lean)
    parts = engine_image.steps(tuple(serving))[:1] if serving else []
    parts = [replace(step, aside=True) for step in [*smollm.steps(), *parts, *images_beside]]
    pairs = [metrics_images.made(), router_image.made()]
    fetched, packed = [first for first, _ in pairs], [second for _, second in pairs]
    made = [*images.steps(), *nodeimage.steps()]
    return [*before, *fetched, first, *built, base, *packed, *parts, *made]


def finished(lean: bool = False) -> list[steps.Step]:
    """What waits for the last Go program."""
    *_, built, last = _go(lean)
    return [*([] if lean else traefik.steps()), replace(last, after=(built.name,), aside=True)]


def _go(lean: bool) -> list[steps.Step]:
    programs, traefik_build = binaries.steps()
    return golang.steps_around([programs] if lean else [programs, *policy.steps(), traefik_build])


def raised(check: bool = False, lean: bool = False) -> list[steps.Step]:
    nodes = [*down.steps(), *cgroups.steps(), *cluster.steps(), *fabric.steps(), *cluster.joining()]
    controller = [] if lean else policies.steps()
    endpoint = [*router_image.steps(), *servicelb.steps(), *metrics_images.steps()]
    return [*nodes, *hub.steps(), *controller, *finished(lean), *endpoint, *checks.steps(check)]


def build(_: argparse.Namespace) -> int:
    machine.require_root()
    with locks.rack(), locks.shared():
        steps.perform(built())
    return 0


def bring_up(lean: bool, serving: Sequence[str], check: bool = False, images_beside: Sequence[steps.Step] = ()) -> bool:
    """Whether it is lean: one that once had the controller of network policies keeps it."""
    machine.require_root()
    with locks.rack(), ExitStack() as shared:
        shared.enter_context(locks.shared())
        lean = lean and not policy.place().exists()
        common = [*nodes_made_of(lean, serving, images_beside), *sysctls.steps()]
        # once Go's caches are gone another rack may build or configure while this one is checked
        caches = finished(lean)[-1].name
        steps.perform(
            [*common, *raised(check, lean)],
            passed=lambda step: shared.close() if step.name == caches else None,
        )
        if not cluster.is_current():
            say("note: the node image has changed since these nodes were made; `down`, then `up`, to renew them")
    return lean


def up(args: argparse.Namespace) -> int:
    if bring_up(args.lean, args.serving, args.check):
        say("note: without the controller of network policies; `rack up` brings it")
    print(f"rack is up: KUBECONFIG={names.KUBECONFIG}  kubectl: {cluster.BIN}/kubectl", file=sys.stderr)
    return 0


def take_down(_: argparse.Namespace) -> int:
    machine.require_root()
    with locks.rack():
        seen = down.down(say)
    counted(seen["first"], seen["before"], seen["after"])
    print(f"kept: {names.CACHE} (binaries and images) and Docker itself")
    return 0


def prune(_: argparse.Namespace) -> int:
    with locks.rack(), locks.shared():
        for path, size in tidy.prune().items():
            print(f"{size >> 20:>8} MiB  {path}")
    print(f"kept: what the rack is made of now, and what other parts keep in {names.CACHE}")
    return 0


def show_times(args: argparse.Namespace) -> int:
    order = [step.name for step in [*nodes_made_of(lean=False), *sysctls.steps(), *raised()]]
    if args.ship:
        times.ship(order)
    print(times.table(order))
    return 0


def show(args: argparse.Namespace) -> int:
    now = status.status()
    if args.json:
        print(json.dumps(now, indent=1))
        return 0 if now["up"] else 1
    print(f"rack: {'up' if now['up'] else 'not up'}   docker: {'answers' if now['docker'] else 'does not answer'}")
    for name, row in now["nodes"].items():
        trouble = " ".join([*(f"missing:{d}" for d in row["missing_links"]), *(f"fault:{f}" for f in row["faults"])])
        where = f"{name:<8}{row['container']:<26}{row['state']:<9}"
        print(f"{where}Ready={row['ready']:<8}{row['ip']:<14}gpu={row['gpu']} {trouble}".rstrip())
    print(f"KUBECONFIG={now['kubeconfig']}\nkubectl: {now['kubectl']}")
    return 0 if now["up"] else 1


def _rails(args: argparse.Namespace) -> tuple[str, ...]:
    return names.RAILS if args.rail == "all" else (args.rail,)


def break_(args: argparse.Namespace) -> int:
    print(json.dumps({args.node: faults.break_(args.node, args.fault, _rails(args))}))
    return 0


def mend(args: argparse.Namespace) -> int:
    print(json.dumps({args.node: faults.mend(args.node, args.fault, _rails(args))}))
    return 0


def node(args: argparse.Namespace) -> int:
    _, container = faults.node(args.node)
    with locks.rack():
        if args.action_name in ("stop", "restart"):
            run(["docker", "stop", container])
        if args.action_name in ("start", "restart"):
            run(["docker", "start", container])
            steps.perform([*fabric.steps(), *cluster.joining()])
    return 0


def load_image(args: argparse.Namespace) -> int:
    for archive in args.archive:
        for container, result in load.load(archive, args.node or ()).items():
            print(f"{archive.name}: {container}: {result}")
    return 0


def show_inventory(_: argparse.Namespace) -> int:
    print(inventory.path().relative_to(names.REPO))
    return 0


def show_state(args: argparse.Namespace) -> int:
    print(json.dumps(state.every(args.node), indent=1, sort_keys=True))
    return 0


def exec_(args: argparse.Namespace) -> int:
    _, container = faults.node(args.node)
    return enter(container, args.command)


def _console() -> Console:
    console = Console("rack", DESCRIPTION, EPILOG)
    command = console.command

    sub = command("up", up, "make the rack, or repair it: build what is missing, start nodes, connect the rails, check")
    sub.add_argument("--check", action="store_true", help="check the pod network even when nothing had to be done")
    sub.add_argument(
        "--lean", action="store_true", help="without what only tests use: nothing enforces network policies"
    )
    sub.add_argument(
        "--serving", metavar="PROFILE", action="append", default=[], help="fetch beside what the stand-in needs for it"
    )
    command("down", take_down, "remove the rack: nodes, volumes, rails, rules; the caches stay")
    sub = command("status", show, "what is running now; exit 0 when the rack is up, 1 when not")
    sub.add_argument("--json", action="store_true", help="everything, as JSON")
    sub = command("state", show_state, "files, kernel settings, units and links of the nodes, as JSON to compare")
    sub.add_argument("node", nargs="*", help="spark1..spark4; all when none is named")
    command("inventory", show_inventory, "the inventory of this rack, for ansible-playbook -i")
    command("prune", prune, "empty the cache of what this rack does not need: old builds, Go's caches")
    sub = command("times", show_times, "how long each step took here, as docs/reference/times.md has them")
    sub.add_argument("--ship", action="store_true", help=f"also write {times.SHIPPED.relative_to(names.REPO)}")
    command("build", build, "only build the node image (Docker, binaries, root file system, images)")
    listed = table({name: fault.meaning for name, fault in faults.FAULTS.items()})
    for name, action, text, which in (
        ("break", break_, "break a node's fabric, or what the node reports", "one of the names above"),
        ("mend", mend, "undo one fault of a node, or all", "all when none is named"),
    ):
        sub = command(name, action, text, listed)
        sub.add_argument("node", help="spark1..spark4")
        nargs = None if name == "break" else "?"
        sub.add_argument("fault", metavar="FAULT", choices=list(faults.FAULTS), nargs=nargs, help=which)
        sub.add_argument("--rail", choices=[*names.RAILS, "all"], default="all", help="both rails unless one is named")
    sub = command(
        "node", node, "stop, start or restart one node like a power button; start also connects its rails again"
    )
    sub.add_argument("node", help="spark1..spark4")
    sub.add_argument(
        "action_name", metavar="stop|start|restart", choices=["stop", "start", "restart"], help="stop, start or restart"
    )
    sub = command("load-image", load_image, "give image archives (OCI or docker, tar) to the nodes that lack them")
    sub.add_argument("archive", type=Path, nargs="+", help="a tar file")
    sub.add_argument("--node", action="append", help="only this node (may be repeated)")
    sub = command("exec", exec_, "run a command on a node: exec spark2 -- ip link")
    sub.add_argument("node", help="spark1..spark4")
    sub.add_argument("command", nargs=argparse.REMAINDER, help="a shell when there is none")
    return console


def main() -> int:
    return _console().main()
