"""The stand-in's images: one per engine release, under every image name that a shipped profile uses with it."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

from scripts.oracle import fetch
from sparkloom import profile as profiles
from sparkloom.engines import releases
from testbed.rack import names, oci, rootfs, store
from testbed.rack.shell import run
from testbed.rack.steps import Say, Step, artefact

RECIPE = "1"  # raise to rebuild
HERE = Path(__file__).resolve().parent
ORACLE = names.REPO / "scripts" / "oracle"
JUDGED = ("sglang", "vllm")  # engines whose own parser judges the command line
Release = tuple[str, str]


def image_names() -> dict[Release, list[str]]:
    """(engine, catalog release) -> full image references, from the shipped profiles."""
    found: dict[Release, set[str]] = defaultdict(set)
    for name in profiles.names():
        engine = profiles.load(name).profile.engine
        if engine.name in JUDGED:
            found[engine.name, releases.nearest(engine.name, engine.release).version].add(qualified(engine.image))
    return {release: sorted(references) for release, references in sorted(found.items())}


def qualified(reference: str) -> str:
    """An image reference as containerd keeps it: with a host."""
    host = reference.split("/")[0]
    return reference if "." in host or ":" in host or host == "localhost" else f"docker.io/{reference}"


def _inputs() -> list[store.Part]:
    wanted = [f"{engine} {version} {' '.join(references)}" for (engine, version), references in image_names().items()]
    return [RECIPE, *wanted, *rootfs.base_inputs(), HERE / "standin", HERE / "entry", ORACLE, Path(oci.__file__)]


def _runtime(tree: Path) -> Path:
    """The stand-in itself: its package, the engines' entry points, and the oracle that loads the real parsers."""
    site = tree / "opt/stand-in"
    shutil.copytree(HERE / "standin", site / "standin")
    shutil.copytree(HERE / "entry/sglang", site / "sglang")
    shutil.copytree(ORACLE, site / "oracle")
    shutil.copytree(HERE / "entry/bin", tree / "usr/local/bin")
    return tree


def _build(work: Path, say: Say) -> None:
    scratch = work / "scratch"
    wanted = image_names()
    base = oci.pack(rootfs.base(), scratch / "layers")
    runtime = oci.pack(_runtime(scratch / "runtime"), scratch / "layers")
    helpers = {}
    for engine in {engine for engine, _ in wanted}:
        folder = fetch.fetch_dependencies(engine, say=say)
        shutil.copytree(folder, scratch / f"needs-{engine}" / "opt/engines" / folder.name)
        helpers[engine] = oci.pack(scratch / f"needs-{engine}", scratch / "layers")
    images = []
    for (engine, version), references in wanted.items():
        say(f"packing {engine} {version}")
        folder = fetch.fetch(engine, version, say=say)
        tree = scratch / f"{engine}-{version}-tree"
        shutil.copytree(folder, tree / "opt/engines" / folder.name)
        layers = [base, helpers[engine], runtime, oci.pack(tree, scratch / "layers")]
        images.append(
            oci.Image(
                references, layers, {"Env": [oci.PATH_ENV, "PYTHONPATH=/opt/stand-in", f"STANDIN_RELEASE={version}"]}
            )
        )
        shutil.rmtree(tree)
    say("writing the archive")
    oci.write(images, work / "engines.tar")
    run(["rm", "-rf", scratch])


def archive() -> Path:
    return store.place("engine-images", store.key_of(_inputs())) / "engines.tar"


def steps() -> list[Step]:
    return [artefact("engine-images", "packs the stand-in engine under the profiles' image names", _inputs, _build)]
