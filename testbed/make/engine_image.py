"""The stand-in's images: one under every image name that a profile uses, each with its release inside.

`which` are profiles that somebody is about to serve: fewer wheels to fetch, of which vLLM's have 400 MB. Empty: all.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scripts.oracle import fetch
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.catalogs import releases
from sparkloom.judge import measured_rows
from sparkloom.onnode.images import reference
from testbed.base import names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import oci, rootfs

RECIPE = "4"  # raise to rebuild
HERE = names.REPO / "testbed" / "standins" / "engine"
ORACLE = names.REPO / "scripts" / "oracle"
JUDGED = ("sglang", "vllm")  # engines whose own parser judges the command line
ROWS = measured_rows.SHIPPED
GB = 1e9
Profiles = tuple[str, ...]


@dataclass(frozen=True, order=True)
class Wanted:
    """One image that a profile names: the engine, the release that judges, what the build carries and takes beyond."""

    engine: str
    release: str
    reference: str
    carries: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()  # flags of a fork, which the release's parser does not know


def wanted(which: Profiles = ()) -> list[Wanted]:
    carried: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    added: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for name in which or profiles.names():
        engine = profiles.load(name).profile.engine
        key = engine.name, releases.nearest(engine.name, engine.release).version, reference.parse(engine.image).tagged
        carried[key] |= set(engine.carries)
        added[key] |= {f"--{flag.replace('_', '-')}" for flag in (engine.fork.flags if engine.fork else ())}
    return sorted(Wanted(*key, tuple(sorted(carried[key])), tuple(sorted(added[key]))) for key in carried)


def model_facts() -> dict[str, dict[str, Any]]:
    """What config.json would tell, for models whose weights are not on the nodes: from the shipped profiles."""
    facts: dict[str, dict[str, Any]] = {}
    for name in profiles.names():
        model = profiles.load(name).profile.model
        heads, layers = model.attention, model.layers.softmax
        on_disk = sum(part.size_gb * GB for part in model.parts.values() if part.lives == "disk")
        facts[model.id] = {
            "architecture": model.architecture,
            "context": model.context,
            "kv_heads": heads.kv_heads,
            "hybrid": bool(model.layers.mamba or model.layers.linear),
            "bytes_total": model.checkpoint.size_gb * GB if model.checkpoint.size_gb else None,
            "bytes_beside": max(on_disk, facts.get(model.id, {}).get("bytes_beside", 0)),
            "active_share": model.active_b / model.parameters_b,
            "kv_values": layers * heads.head_dim,
            "weights_gib": dict(model.measured.weights_gib_per_rank),
        }
    return facts


def _facts() -> str:
    return json.dumps(model_facts(), indent=1, sort_keys=True)


def _listed() -> list[Path]:
    """Catalogs of the engines that have no parser to ask."""
    folder = releases.FOLDER
    return sorted({folder / f"{w.engine}-{w.release}.json" for w in wanted() if w.engine not in JUDGED})


def _layer_inputs(which: Profiles) -> list[store.Part]:
    judged = sorted({f"{w.engine} {w.release}" for w in wanted(which) if w.engine in JUDGED})
    return [RECIPE, *judged, *rootfs.base_inputs(), ORACLE / "fetch.py", Path(oci.__file__)]


def _inputs(which: Profiles) -> list[store.Part]:
    data = [_facts(), *(str(w) for w in wanted(which)), *_listed(), ROWS]
    return [*_layer_inputs(which), *data, HERE / "standin", HERE / "entry", ORACLE]


def _build_layers(which: Profiles, work: Path, say: Say) -> None:
    """What changes seldom, packed once: the system, the parsers' few dependencies, each release's Python files."""
    layers = {"base": oci.pack(rootfs.base(), work)}
    for engine, release in sorted({(w.engine, w.release) for w in wanted(which) if w.engine in JUDGED}):
        if f"needs-{engine}" not in layers:
            layers[f"needs-{engine}"] = _pack(_needs(engine, say), work, with_libraries=True)
        say(f"packing {engine} {release}")
        layers[f"{engine}-{release}"] = _pack(fetch.fetch(engine, release, say=say), work)
    oci.keep(work, layers)


def _needs(engine: str, say: Say) -> Path:
    """The parser's small real packages, for the Python of the image: it need not be the one that runs this."""
    (library,) = (rootfs.base() / "usr/lib").glob("python3.*")
    version = library.name.removeprefix("python")
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return fetch.fetch_dependencies(engine, say=say)
    ours = fetch.dependency_dir(engine)
    folder = ours.with_name(f"{engine}-needs-py{version.replace('.', '')}-{ours.name.rpartition('-')[2]}")
    if not (folder / "complete").is_file():
        say(f"{engine}: installing the parser's packages for Python {version}")
        aside = folder.with_name(f".{folder.name}")
        store.remove_tree(aside)
        pip = [sys.executable, "-m", "pip", "--quiet", "install", "--no-compile", "--only-binary=:all:"]
        run([*pip, f"--python-version={version}", "--target", aside, *fetch.REAL_DEPENDENCIES[engine]])
        (aside / "complete").write_text("")
        aside.rename(folder)
    return folder


def _pack(folder: Path, work: Path, with_libraries: bool = False) -> oci.Layer:
    tree = work / "tree"
    shutil.copytree(folder, tree / "opt/engines" / folder.name)
    if with_libraries:
        rootfs.add_libraries(tree)
    layer = oci.pack(tree, work)
    run(["rm", "-rf", tree])
    return layer


def _layers(which: Profiles) -> dict[str, oci.Layer]:
    return oci.kept(store.place(f"engine-layers{_some(which)}", store.key_of(_layer_inputs(which))))


def _some(which: Profiles) -> str:
    """Kept apart: the cache forgets old ones of a name."""
    return "-chosen" if which else ""


def _runtime(tree: Path) -> Path:
    """The stand-in itself: its package, the engines' entry points, the oracle, and what was measured."""
    site = tree / "opt/stand-in"
    shutil.copytree(HERE / "standin", site / "standin")
    shutil.copytree(HERE / "entry/sglang", site / "sglang")
    shutil.copytree(ORACLE, site / "oracle")
    shutil.copytree(HERE / "entry/bin", tree / "usr/local/bin")
    shutil.copytree(HERE / "entry/app", tree / "app")  # llama.cpp's programs, which are in no PATH
    write_data(site / "data")
    return tree


def write_data(folder: Path) -> None:
    """The data that the stand-in reads; tests write the same folder."""
    folder.mkdir(parents=True)
    (folder / "models.json").write_text(_facts())
    for path in [*_listed(), ROWS]:
        shutil.copy2(path, folder / path.name)


def _build(which: Profiles, work: Path, say: Say) -> None:
    scratch = work / "scratch"
    layers = _layers(which)
    runtime = oci.pack(_runtime(scratch / "runtime"), scratch / "layers")
    images = []
    for image in wanted(which):
        own = [layers[name] for name in (f"needs-{image.engine}", f"{image.engine}-{image.release}") if name in layers]
        settings = [
            oci.PATH_ENV,
            "PYTHONPATH=/opt/stand-in",
            f"STANDIN_RELEASE={image.release}",
            f"STANDIN_IMAGE={image.reference}",
            f"STANDIN_CARRIES={' '.join(image.carries)}",
            f"STANDIN_FORK={' '.join(image.adds)}",
        ]
        images.append(oci.Image([image.reference], [layers["base"], *own, runtime], {"Env": settings}))
    say("writing the archive")
    oci.write(images, work / "engines.tar")
    run(["rm", "-rf", scratch])


def archive(which: Profiles = ()) -> Path:
    return store.place(f"engine-images{_some(which)}", store.key_of(_inputs(which))) / "engines.tar"


def steps(which: Profiles = ()) -> list[Step]:
    fetches = "fetches and packs the engines' releases (Python files only)"
    packs = "packs the stand-in engine under the profiles' image names"
    some = _some(which)
    return [
        artefact(f"engine-layers{some}", fetches, partial(_layer_inputs, which), partial(_build_layers, which)),
        artefact(f"engine-images{some}", packs, partial(_inputs, which), partial(_build, which)),
    ]
