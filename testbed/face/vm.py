"""The virtual machines' command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from testbed.base import locks, machine, steps, vm_names
from testbed.base.shell import RackError
from testbed.beds.vm import lifecycle, login, qemu
from testbed.face.console import Console, given
from testbed.make.vm import trees

DESCRIPTION = "Virtual Sparks with a real kernel fabric: SR-IOV by QEMU's igb card, RDMA by Soft-RoCE."
EPILOG = f"""Booted once and kept in {vm_names.CACHE}: from then on a start takes seconds and is always the same
machine, fresh from its first boot. docs/real.md lists what is real."""


def _able() -> None:
    machine.require_root()
    if machine.architecture() != "amd64":
        raise RackError("found an ARM machine, expected x86_64: the virtual machines' cards were only tried there")


def able(_: argparse.Namespace) -> int:
    """Refuses in one line where machines cannot be made."""
    _able()
    trees.mirror()
    return 0


def build(args: argparse.Namespace) -> int:
    _able()
    with locks.machines():
        steps.perform(lifecycle.build_steps(args.nodes))
    return 0


def up(args: argparse.Namespace) -> int:
    _able()
    with locks.machines():
        steps.perform(lifecycle.up_steps(args.nodes))
    print("machines are up: ansible-playbook -i inventories/vm playbooks/fabric.yml", file=sys.stderr)
    return 0


def take_down(_: argparse.Namespace) -> int:
    with locks.machines():
        stopped = lifecycle.down()
    print(f"stopped: {', '.join(stopped) or 'none was running'}; kept: {vm_names.CACHE}")
    return 0


def show(args: argparse.Namespace) -> int:
    rows = [
        {"name": m.name, "pid": qemu.pid(m.state), "ssh": f"127.0.0.1:{m.port}", "answers": bool(login.boot_id(m))}
        for m in lifecycle.running()
    ]
    if args.json:
        print(json.dumps({"up": bool(rows), "accelerator": vm_names.accelerator(), "machines": rows}, indent=1))
    else:
        for row in rows:
            print(f"{row['name']:<8}pid {row['pid']:<8}{row['ssh']:<18}{'answers' if row['answers'] else 'silent'}")
        print(f"accelerator: {vm_names.accelerator()}; consoles: {vm_names.STATE}/spark*/serial.log")
    return 0 if rows and all(row["answers"] for row in rows) else 1


def ssh(args: argparse.Namespace) -> int:
    command = given(args.command)
    words = login.argv(lifecycle.of(args.node), *(("-t",) if sys.stdin.isatty() and not command else ()))
    os.execvp("ssh", [*words, *command])


def reboot(args: argparse.Namespace) -> int:
    start = time.monotonic()
    box = lifecycle.of(args.node)
    with locks.machines():
        lifecycle.reboot(box)
    print(f"{args.node} is back after {time.monotonic() - start:.0f} s")
    return 0


def snapshot(args: argparse.Namespace) -> int:
    with locks.machines():
        for box in lifecycle.running():
            lifecycle.snapshot(box, args.action_name, args.name)
            print(f"{box.name}: {args.name} {'kept' if args.action_name == 'save' else 'is back'}")
    return 0


def _console() -> Console:
    console = Console("vm", DESCRIPTION, EPILOG)
    command = console.command

    for name, action, text in (
        ("up", up, "start the machines as they were after their first boot; builds what is missing"),
        ("build", build, "only build: QEMU, the disk, one boot to keep"),
    ):
        sub = command(name, action, text)
        sub.add_argument("--nodes", type=int, choices=range(2, vm_names.MOST + 1), default=2, help="how many Sparks")
    command("able", able, "exit 0 where this machine can make virtual machines; else one line says why not")
    command("down", take_down, "stop the machines and forget what they wrote; the cache stays")
    sub = command("status", show, "what runs; exit 0 when all that run answer, 1 when not or none runs")
    sub.add_argument("--json", action="store_true", help="everything, as JSON")
    sub = command("ssh", ssh, "log in as root, or run a command: ssh spark1 -- rdma link")
    sub.add_argument("node", help="spark1, spark2, ...")
    sub.add_argument("command", nargs=argparse.REMAINDER, help="a shell when there is none")
    sub = command("reboot", reboot, "reboot one machine and wait until it answers")
    sub.add_argument("node", help="spark1, spark2, ...")
    sub = command("snapshot", snapshot, "save all running machines under a name, or load that")
    sub.add_argument("action_name", metavar="save|load", choices=["save", "load"], help="keep them, or bring them back")
    sub.add_argument("name", help="of your choice; all running machines share it")
    return console


def main() -> int:
    return _console().main()
