"""The command line of the stand-in engine: its images, and faults for it."""

from __future__ import annotations

import argparse
import json

from testbed.base import steps
from testbed.beds.rack import load
from testbed.face.console import Console, table
from testbed.make import engine_image, rootfs
from testbed.make.real import llamacpp, sglang, vllm
from testbed.trials import engine_faults

DESCRIPTION = "The stand-in engine, which serves without a GPU: its images, and faults for it on the rack."
EPILOG = "docs/real.md lists what is real."
WHERE = "spark1..spark4, or all"
# Engines that run here themselves, on CPU.
REAL = {
    "sglang": sglang.IMAGE,
    f"sglang-{sglang.POSTS}": sglang.IMAGE_OF_POSTS,
    "llamacpp": llamacpp.IMAGE,
    "vllm": vllm.IMAGE,
}


def build(args: argparse.Namespace) -> int:
    steps.perform([*rootfs.steps(), *engine_image.steps(tuple(args.profiles))])
    return 0


def load_images(args: argparse.Namespace) -> int:
    build(args)
    for node, done in load.load(engine_image.archive(tuple(args.profiles))).items():
        print(f"{node}: {done}")
    return 0


def real(args: argparse.Namespace) -> int:
    engine = REAL[args.engine]
    steps.perform(engine.steps())
    if args.nodes:
        for node, done in load.load(engine.archive(), args.nodes, unpack=True).items():
            print(f"{node}: {done}")
    return 0


def image_names(args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps([vars(image) for image in engine_image.wanted()], indent=1))
        return 0
    for image in engine_image.wanted():
        print(f"{image.engine} {image.release}: {image.reference}")
    return 0


def fault(args: argparse.Namespace) -> int:
    print(json.dumps(engine_faults.add(args.node, args.name, args.settings)))
    return 0


def mend(args: argparse.Namespace) -> int:
    print(json.dumps(engine_faults.mend(args.node, args.name)))
    return 0


def _console() -> Console:
    console = Console("engine", DESCRIPTION, EPILOG)
    command = console.command

    packs = command("build", build, "pack the images, one per image name in model_profiles/ (cached by content)")
    loads = command("load", load_images, "build, then give the images to every node of the rack")
    for sub in (packs, loads):
        sub.add_argument("profiles", metavar="PROFILE", nargs="*", help="only the images of these; without one all")
    sub = command("real", real, "build the image of an engine itself, on CPU, and give it to nodes")
    sub.add_argument("engine", choices=list(REAL), help="to download: an sglang 1.3 GB, vllm 0.8 GB, llamacpp 13 MB")
    sub.add_argument("nodes", metavar="NODE", nargs="*", help="spark1..spark4; without one it is only built")
    sub = command("image-names", image_names, "image names of the profiles, with engine and judging release")
    sub.add_argument("--json", action="store_true", help="the same as a JSON list")
    kinds = f"Faults, with their settings as words NAME=VALUE:\n{table(engine_faults.KINDS)}"
    sub = command("fault", fault, "make the engine of one node, or of all, misbehave", kinds)
    sub.add_argument("node", help=WHERE)
    sub.add_argument("name", metavar="FAULT", choices=list(engine_faults.KINDS), help="one of the names above")
    sub.add_argument("settings", nargs="*", metavar="NAME=VALUE", help="as the fault's line above names them")
    sub = command("mend", mend, "take faults back; a rank that died is started again by Kubernetes")
    sub.add_argument("node", help=WHERE)
    sub.add_argument(
        "name", metavar="FAULT", nargs="?", choices=list(engine_faults.KINDS), help="all when none is named"
    )
    return console


def main() -> int:
    return _console().main()
