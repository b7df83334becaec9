"""`python -m scripts.image context PROFILE --digest D -o DIR` writes a build context; `check PROFILE` judges it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from scripts.image import llamacpp, recipe
from scripts.oracle import fetch
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.onnode.rank.patching import PatchError

# where a package's top folders lie in its wheel, when not at the top
INSIDE = {"nvidia-cutlass-dsl-libs-base": "nvidia_cutlass_dsl/python_packages"}


def released(release: str) -> Any:
    """Folders of the wheels: the profile's own release where the patch knows it, else the newest that it knows."""

    def find(patch: dict[str, Any], package: str) -> Path:
        known = release if release in patch["releases"] else patch["releases"][-1]
        return fetch.fetch_package(patch["package"], known) / INSIDE.get(patch["package"], "") / package

    return find


def context(loaded: profile.LoadedProfile, digest: str, run_digest: str) -> dict[str, bytes]:
    """llama.cpp's image is ours from the source on; the others are somebody's, with files changed."""
    if loaded.profile.engine.name == "llamacpp":
        return llamacpp.context(loaded, digest, run_digest)
    return recipe.context(loaded, digest or loaded.profile.engine.digest or "")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m scripts.image", description=__doc__)
    parser.add_argument("action", choices=["context", "check"])
    parser.add_argument("profile")
    parser.add_argument("--digest", default="", help="of the base image; engine.digest of the profile when it has one")
    parser.add_argument("--run-digest", default="", help="llama.cpp: of the image that it runs in")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/image"))
    args = parser.parse_args(words)
    try:
        loaded = profile.load(args.profile)
        if args.action == "context":
            recipe.write(context(loaded, args.digest, args.run_digest), args.output)
            print(f"{args.output}: docker build -t NAME {args.output}")
        else:
            print("\n".join(recipe.check(loaded, released(loaded.profile.engine.release))))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except (PatchError, fetch.FetchError) as refusal:
        print(f"image: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
