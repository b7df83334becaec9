"""The command line of the bare machines."""

from __future__ import annotations

import argparse
import json
import sys
import time

from testbed.base import docker, locks, machine, names, steps, store
from testbed.base.shell import RackError
from testbed.beds.bare import machines
from testbed.beds.rack import down
from testbed.face import rack
from testbed.face.console import Console, counted, enter, say
from testbed.make import nodeimage
from testbed.make.real import k3s as itself

DESCRIPTION = """Bare machines for the roles that make a cluster: Sparks (spark1, spark2, ...) and one server beside
them (box1), as systemd containers of the rack's node image, without Kubernetes."""
BASELINE = names.CACHE / f"baseline-{machines.NAME}.json"


def build(_: argparse.Namespace) -> int:
    machine.require_root()
    with locks.shared():
        steps.perform([*rack.built(), *itself.steps()])
    print(f"{itself.program()}: {itself.RELEASE}", file=sys.stderr)
    return 0


def up(args: argparse.Namespace) -> int:
    machine.require_root()
    there = docker.answers() and docker.image_id(nodeimage.tag())
    with locks.shared():  # Docker too: the rack's `down` puts its runtime back, which these machines need
        steps.perform(docker.steps() if there else rack.built())
    began = time.monotonic()
    if not machines.there() and not BASELINE.exists():
        store.write_json(BASELINE, {"counts": down.counts()})
    machines.up(args.nodes, say)
    print(f"{len(machines.there())} machines are up after {time.monotonic() - began:.1f} s", file=sys.stderr)
    return 0


def take_down(_: argparse.Namespace) -> int:
    machine.require_root()
    first = store.read_json(BASELINE).get("counts", {})
    before = down.counts()
    machines.down(say)
    BASELINE.unlink(missing_ok=True)
    after = down.counts()
    counted(first, before, after)
    return 0


def show(args: argparse.Namespace) -> int:
    now = machines.status()
    if args.json:
        print(json.dumps(now, indent=1))
    else:
        for name, row in now["machines"].items():
            print(f"{name:<8}{row['container']:<24}{row['state']:<9}{row['k3s']}")
        pins = now["pins"]
        program = f"{pins['k3s_version']}: {pins['k3s_program']}" if pins else "none"
        print(f"release files: {machines.ARTIFACTS} ({program})")
    return 0 if now["up"] else 1


def exec_(args: argparse.Namespace) -> int:
    container = f"{machines.NAME}-{args.node}"
    if container not in machines.there():
        raise RackError(f"found no machine '{args.node}'; there are {', '.join(machines.there()) or 'none'}")
    return enter(container, args.command)


def _console() -> Console:
    console = Console("bare", DESCRIPTION, "docs/k3s.md says what they are for.")
    command = console.command

    command("build", build, "build K3s itself, which `up` then takes (25 minutes of one core, once)")
    sub = command("up", up, "make them, or start what is missing")
    sub.add_argument("--nodes", type=int, default=2, choices=range(1, 9), help="Sparks; one server more is beside them")
    command("down", take_down, "remove them, and check that the machine is as before `up`")
    sub = command("status", show, "what is there; exit 0 when all run")
    sub.add_argument("--json", action="store_true", help="everything, as JSON")
    sub = command("exec", exec_, "run a command on one: exec spark1 -- systemctl status k3s-agent")
    sub.add_argument("node", help="spark1, ..., box1")
    sub.add_argument("command", nargs=argparse.REMAINDER, help="a shell when there is none")
    return console


def main() -> int:
    return _console().main()
