"""Generated checkpoints, served as a model hub would."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from testbed.base import names
from testbed.standins.hub import repository, weights
from testbed.standins.hub.catalog import Catalog
from testbed.standins.hub.faults import Faults
from testbed.standins.hub.server import Hub

DATA = names.REPO / ".build/hub"


def make(args: argparse.Namespace) -> int:
    shape = weights.Shape(args.shards, int(args.shard_mib * weights.MIB), args.seed, args.sparse)
    for name in args.profile:
        model = profile.load(name).profile.model
        made = repository.make(args.data, model, shape, branch=args.branch, gated=args.gated)
        commit = made.branches[args.branch]
        size = sum(file.size for file in made.commits[commit])
        print(f"{model.id}@{args.branch} = {commit}: {len(made.commits[commit])} files, {size / 1e6:.1f} MB")
    return 0


def serve(args: argparse.Namespace) -> int:
    faults = Faults(
        rate=int(args.rate_mb * 1e6),
        cut_after=args.cut_after,
        cut_times=args.cut_times,
        corrupt=args.corrupt,
        missing=args.missing,
    )
    try:
        catalog = Catalog(args.data) if args.profiles else None
        hub = Hub((args.host, args.port), args.data, faults, tuple(args.token), catalog)
    except OSError as error:
        print(
            f"hub: cannot listen on {args.host}:{args.port}: {error.strerror}; choose another --port", file=sys.stderr
        )
        return 1
    models = (
        "every profile's, when asked for" if args.profiles else ", ".join(repository.every(args.data)) or "none yet"
    )
    host, port = hub.server_address[:2]
    print(f"HF_ENDPOINT=http://{host!s}:{port}  (models: {models})", flush=True)
    try:
        hub.serve_forever()
    except KeyboardInterrupt:
        return 0
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m testbed hub", description=__doc__)
    top.add_argument("--data", type=Path, default=DATA, help="where the repositories are (default: .build/hub)")
    commands = top.add_subparsers(required=True, title="commands", metavar="COMMAND")
    sub = commands.add_parser("make", help="generate a checkpoint for each named profile")
    sub.add_argument("profile", nargs="+", help="a name from model_profiles/, or a file")
    sub.add_argument("--shards", type=int, default=4, help="files of weights")
    sub.add_argument("--shard-mib", type=float, default=4.0, help="size of each")
    sub.add_argument("--seed", type=int, default=1, help="another seed is another commit")
    sub.add_argument("--branch", default="main", help="that names the commit")
    sub.add_argument("--gated", action="store_true", help="only clients with a --token of `serve` may read it")
    sub.add_argument("--sparse", action="store_true", help="mostly holes: any size for a few blocks of disk")
    sub.set_defaults(run=make)
    sub = commands.add_parser("serve", help="answer huggingface_hub clients (HF_ENDPOINT=http://HOST:PORT)")
    sub.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    sub.add_argument("--port", type=int, default=0, help="0: any; the line printed says which")
    sub.add_argument("--token", action="append", default=[], help="a token that may read gated models")
    sub.add_argument(
        "--profiles", action="store_true", help="generate what a shipped profile names when it is asked for"
    )
    sub.add_argument("--rate-mb", type=float, default=0, help="MB per second over all connections")
    sub.add_argument("--cut-after", type=int, default=0, help="drop a connection after so many bytes ...")
    sub.add_argument("--cut-times", type=int, default=1, help="... so often")
    sub.add_argument("--corrupt", default="", help="flip one byte of the files that match this pattern")
    sub.add_argument("--missing", default="", help="list the files that match this pattern, but do not have them")
    sub.set_defaults(run=serve)
    return top


def main() -> int:
    args = parser().parse_args()
    try:
        return int(args.run(args))
    except InputError as error:
        print(f"hub: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
