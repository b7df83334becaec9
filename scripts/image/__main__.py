"""`python -m scripts.image context PROFILE --digest D -o DIR` writes a build context; `check PROFILE` judges it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.image import recipe, wheels
from scripts.oracle import fetch
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.onnode.rank.patching import PatchError


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m scripts.image", description=__doc__)
    parser.add_argument("action", choices=["context", "check"])
    parser.add_argument("profile")
    parser.add_argument("--digest", default="", help="of the base image; engine.digest of the profile when it has one")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/image"))
    args = parser.parse_args(words)
    try:
        loaded = profile.load(args.profile)
        if args.action == "context":
            recipe.write(recipe.context(loaded, args.digest or loaded.profile.engine.digest or ""), args.output)
            print(f"{args.output}: docker build -t NAME {args.output}")
        else:
            engine = loaded.profile.engine
            print("\n".join(recipe.check(loaded, wheels.of(engine.name, engine.release))))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except (PatchError, fetch.FetchError) as refusal:
        print(f"image: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
