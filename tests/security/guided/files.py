"""Parsers of files that somebody else wrote: recipes, profiles, logs, checkpoints, archives of images, keys.yml."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.visible import visible
from sparkloom.cli.importing import MOST
from sparkloom.inputs import client_keys, image_archive, known_hosts
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.checkpoint import as_model, headers, reading
from sparkloom.inputs.checkpoint.sources import Folder, Source
from sparkloom.inputs.importers import source
from sparkloom.judge import diagnose, imported, rules
from sparkloom.launch import engines
from sparkloom.launch.resolve import resolve
from sparkloom.measure.matrix import spec
from sparkloom.onnode.nccl import log as nccl_log
from tests import image_archives
from tests.places import DATA, REPO
from tests.security.guided.target import JSON_WORDS, SCRATCH, Target

SCRIPT_WORDS = (
    "docker run ",
    " -e ",
    " --entrypoint ",
    "bash -c '",
    "vllm serve ",
    "python3 -m sglang.launch_server ",
    " \\\n",
    "${",
    "$(",
    "<<EOF\n",
    "for i in ",
    "; do ",
    "&&",
    "--tp-size ",
    "trtllm-serve ",
    "llama-server ",
    "'\"'",
)


def text_of(data: bytes) -> str:
    """As `sparkloom import` takes it in."""
    try:
        return data[:MOST].decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError.single("-", str(error)) from None


def recipe(data: bytes) -> None:
    source.read(text_of(data), "recipe.yaml", engines.programs())


def judged(data: bytes) -> None:
    """As `sparkloom import` does it, to the verdict: some hundred times as slow as its parser alone."""
    taken = imported.take_in(text_of(data), "recipe.yaml")
    cluster = case.cluster()
    json.dumps(imported.judge(taken, imported.roomy(cluster, 4)).as_dict())


def profile(data: bytes) -> None:
    loaded = profiles.of_text(text_of(data), "somebody-s", "somebody-s.yml")
    rules.check(resolve(loaded, case.cluster()))


def on_disk(read: Callable[[Path], object], name: str) -> Callable[[bytes], None]:
    def reads(data: bytes) -> None:
        (SCRATCH / name).write_bytes(data)
        read(SCRATCH / name)

    return reads


def log(path: Path) -> None:
    told = diagnose.diagnose_files([path])
    assert all(visible(line) is not None for line in told["lines"])


def of_nccl(data: bytes) -> None:
    nccl_log.read_text(data.decode(errors="replace"), nodes=2).as_dict()


class Memory(Source):
    """A checkpoint's files by name."""

    shown, commit, gated, config = "memory", None, False, "config.json"

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(data) for name, data in self.files.items()}

    def part(self, name: str, start: int, stop: int) -> bytes:
        return self.files[name][start:stop]


def safetensors(data: bytes) -> None:
    """As it stands, and as a header whose length is right."""
    framed = struct.pack("<Q", len(data)) + data + b"\0" * 64
    for file in (data, framed):
        try:
            found = headers.of(Memory({"model.safetensors": file}))
        except InputError:
            continue
        for tensor in found.tensors if found else ():
            headers.group_of(headers.module(headers.starred(tensor.name)), 4)


CHECKPOINT = ("config.json", "hf_quant_config.json", headers.INDEX, "generation_config.json", "model.safetensors")
BETWEEN = b"\n\x1e\n"


def checkpoint(data: bytes) -> None:
    """Each file behind the one before; the last one is the header of the weights."""
    files = dict(zip(CHECKPOINT, data.split(BETWEEN), strict=False))
    if raw := files.get("model.safetensors"):
        files["model.safetensors"] = struct.pack("<Q", len(raw)) + raw
    found = reading.of(cast("Folder", Memory({name: text for name, text in files.items() if text})), "org/name")
    yaml.safe_dump(as_model.of(found).data)


def grid(path: Path) -> None:
    specs = spec.load(path)
    spec.cells(*specs)


def keys(data: bytes) -> None:
    for key in client_keys.parsed(text_of(data), "keys.yml"):
        assert (key.entry.hash and key.ends is None) or key.ends


def of_ssh(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # the person's own file
    known_hosts.place(SCRATCH).parent.mkdir(parents=True, exist_ok=True)
    known_hosts.place(SCRATCH).write_bytes(data)
    known_hosts.read(SCRATCH)


# --- seeds --------------------------------------------------------------------------------------------------------


def recipes() -> Iterator[bytes]:
    for one in yaml.safe_load((DATA / "public_recipes.yml").read_text()):
        yield one["text"].encode()
    for path in sorted((REPO / "tests/journeys/recipes").iterdir()):
        yield path.read_bytes()
    for one in yaml.safe_load((DATA / "recipes.yml").read_text()):
        yield " ".join([*one["program"], one["posted"]]).encode()


def forms(*words: str) -> Callable[[], Iterator[bytes]]:
    """Recipes with one of these words in them; all of them where there are none such."""

    def seeds() -> Iterator[bytes]:
        every = list(recipes())
        yield from [one for one in every if any(word.encode() in one for word in words)] or every

    return seeds


def shipped() -> Iterator[bytes]:
    return (path.read_bytes() for path in sorted((REPO / "model_profiles").glob("*.yml")))


def logs() -> Iterator[bytes]:
    for value in yaml.safe_load((DATA / "rule_logs.yml").read_text()).values():
        yield str(value).encode()
    yield (DATA / "healthy_sglang_0.5.12.log").read_bytes()[:16_000]
    yield from nccl_logs()


def nccl_logs() -> Iterator[bytes]:
    return (path.read_bytes()[:16_000] for path in sorted((DATA / "nccl").rglob("*.log")))


def header() -> Iterator[bytes]:
    shape: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for number, name in enumerate(("model.embed_tokens.weight", "model.layers.0.mlp.experts.3.up_proj.weight_scale")):
        shape[name] = {
            "dtype": ("BF16", "F8_E4M3")[number],
            "shape": [8, 4],
            "data_offsets": [64 * number, 64 * number + 64],
        }
    yield json.dumps(shape).encode()
    yield struct.pack("<Q", 2) + b"{}"


def _short(told: Any) -> Any:
    """Of the same form, with a few layers: what is computed of each takes its time."""
    if isinstance(told, dict):
        return {key: min(value, LAYERS) if key in COUNTS else _short(value) for key, value in told.items()}
    return told


COUNTS, LAYERS = ("num_hidden_layers", "n_layer", "num_layers"), 4


def checkpoints() -> Iterator[bytes]:
    for number, path in enumerate(sorted((DATA / "models").glob("*.yml"))):
        says = _short(yaml.load(path.read_text(), yaml.CSafeLoader)["says"])
        parts = [json.dumps(says.get(name.removesuffix(".json"), {})).encode() for name in CHECKPOINT[:2]]
        index = b'{"metadata": {"total_size": 4}, "weight_map": {"a": "model.safetensors"}}'
        more = ([], [index, b"{}"], [b"", b"", next(header())])[number % 3]
        yield BETWEEN.join([*parts, *more])


def archives() -> Iterator[bytes]:
    one, other = (image_archives.image(machine, b"x") for machine in ("arm64", "amd64"))
    yield image_archives.layout(**{"localhost/a:1": one, "b": other})
    yield image_archives.layout(**{"localhost/a:1": image_archives.index(one, other)})
    yield image_archives.older(one, "localhost/a:1")


def grids() -> Iterator[bytes]:
    return (path.read_bytes() for path in sorted((REPO / "testbed/trials").glob("grid*.yml")))


def keyrings() -> Iterator[bytes]:
    yield (
        b"client_keys:\n  - {name: alice, hash: 'sha256:" + b"a" * 64 + b"', models: [glm], expires: '2027-01-31', "
        b"requests_per_minute: 3, tokens_per_minute: 9, requests_at_once: 2, made: '2026-01-31', admin: true}\n"
    )


def host_lines() -> Iterator[bytes]:
    yield b"spark1 ssh-ed25519 " + b"A" * 68 + b" machine-id=" + b"0" * 32 + b" serial=X1\n# a word\n"


TARGETS = {
    "sparkrun": Target(
        recipe, forms("recipe_version", "sparkrun"), (InputError,), ("recipe_version:", "defaults:", "{tp}")
    ),
    "compose": Target(
        recipe, forms("services:"), (InputError,), ("services:", "<<: *a", "command:", "deploy:", "x-a: &a")
    ),
    "shell": Target(recipe, forms("docker run", "#!"), (InputError,), SCRIPT_WORDS),
    "cookbook": Target(recipe, forms("match: {", "match:{"), (InputError,), ("=>", "`${", "const ", "flags: [")),
    "import": Target(judged, recipes, (InputError,), SCRIPT_WORDS),
    "profile": Target(profile, shipped, (InputError,), ("launch:", "engine:", "flags:", "env:", "topology:")),
    "grid": Target(on_disk(grid, "grid.yml"), grids, (InputError,), ("profile:", "set:", "vary:")),
    "log": Target(on_disk(log, "engine.log"), logs, (InputError,), ("[rank3]: ", "\x1b[31m", "Error: ", "NCCL WARN ")),
    "nccl-log": Target(
        of_nccl, nccl_logs, (), ("NCCL INFO ", " via NET/IB/", "nranks ", "Channel ", "GDRDMA", "comm ")
    ),
    "safetensors": Target(safetensors, header, (InputError,), ('"dtype"', '"data_offsets"', '"shape"', *JSON_WORDS)),
    "config.json": Target(checkpoint, checkpoints, (InputError,), ("num_hidden_layers", "layer_types", *JSON_WORDS)),
    "image-archive": Target(on_disk(image_archive.read, "images.tar"), archives, (InputError,), JSON_WORDS),
    "keys.yml": Target(keys, keyrings, (InputError,), ("client_keys:", "hash:", "models:", "expires:")),
    "known-hosts": Target(of_ssh, host_lines, (), ("machine-id=", "serial=")),
}
