"""A recipe for sparkrun, version 2: it adds nodes, ranks, addresses and NCCL's names itself, so these stay out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from sparkloom.inputs.importers import vocabulary
from sparkloom.inputs.importers.found import by_flag
from sparkloom.inputs.importers.sparkrun import KEPT
from sparkloom.inputs.profile._text import block
from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch
from sparkloom.render.export import host

CACHE = "/cache/huggingface/hub"  # where sparkrun's containers have the hub cache
# Words of a launch that sparkrun gives itself, once it knows the hosts.
ADDED = {"nnodes", "node_rank", "master_addr", "master_port", "headless", "dist_init_addr", "rpc", "host", "port"}
PARTS = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "dp": "data_parallel"}


def write(launch: Launch, facts: Mapping[str, Any]) -> str:
    profile, parallel = launch.profile.profile, launch.profile.profile.launch.parallel
    defaults: dict[str, Any] = {"host": "0.0.0.0", "port": launch.port}
    defaults |= {
        name: getattr(parallel, part) for part, name in PARTS.items() if getattr(parallel, part, 1) > 1 or part == "tp"
    }
    lines, values = _command(launch, defaults)
    data: dict[str, Any] = {"recipe_version": "2", "model": profile.model.id}
    if profile.model.revision:
        data["model_revision"] = profile.model.revision
    data |= {
        "runtime": vocabulary.WRITTEN.get(launch.engine, launch.engine),
        "container": launch.image,
        "min_nodes": parallel.nodes,
        "max_nodes": parallel.nodes,
        "metadata": {"description": profile.summary, KEPT: dict(facts)},
        "defaults": defaults | values,
    }
    if profile.env:
        data["env"] = dict(profile.env)
    if texts := host.texts(launch):
        data["pre_exec"] = [_written(path, text) for path, text in texts.items()]
    head = f"# {launch.profile.name} for sparkrun, by sparkloom export\n"
    command = "command: |\n" + "".join(f"  {line} \\\n" for line in lines[:-1]) + f"  {lines[-1]}\n"
    return head + block(data, 3) + command


def _command(launch: Launch, defaults: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The command's lines, with places for what people change, and the values of those that hold JSON."""
    values: dict[str, Any] = {}
    program, words = _program(launch)
    lines = [program]
    for flag in by_flag(words, "--"):
        name = flag[0].partition("=")[0].lstrip("-").replace("-", "_")
        if flag[0].startswith("--") and name in ADDED:
            continue
        part = PARTS.get(engines.get(launch.engine).placed.get(name, ""), "")
        if part in defaults and flag[0].startswith("--"):
            lines.append(f"{flag[0]} {{{part}}}")
            continue
        text = " ".join(_placed(name, word, launch, values) for word in flag)
        if flag[0].startswith("-"):
            lines.append(text)
        else:
            lines[-1] += f" {text}"
    return [*lines, "--host {host}", "--port {port}"], values


def _program(launch: Launch) -> tuple[str, list[str]]:
    """How the engine is started, without the place that its image has for it, and the words behind that."""
    words = launch.ranks[0].argv
    head = (words[0].rsplit("/", 1)[-1], *words[1:])
    start = next(way for way in engines.get(launch.engine).starts if head[: len(way)] == way)
    return " ".join(start), list(words[len(start) :])


def _placed(name: str, word: str, launch: Launch, values: dict[str, Any]) -> str:
    model = launch.profile.profile.model.id
    if word.startswith("--") and "=" not in word:
        return word
    if word == model:
        return "{model}"
    word = word.replace(base.model_folder(model), _snapshot(launch))
    if word.startswith("{") and _is_json(word):
        values[name] = word
        return f"'{{{name}}}'"
    if re.search(r"\{\w+\}", word):  # would be taken for a place
        values[name] = word
        return shlex.quote(f"{{{name}}}")
    return shlex.quote(word)


def _is_json(word: str) -> bool:
    try:
        json.loads(word)
    except ValueError:
        return False
    return "'" not in word


def _snapshot(launch: Launch) -> str:
    model = launch.profile.profile.model
    return f"{CACHE}/models--{model.id.replace('/', '--')}/snapshots/{model.revision or 'REVISION'}"


def _written(path: str, text: str) -> str:
    folder = path.rpartition("/")[0]
    return f"mkdir -p {folder} && cat > {path} <<'SPARKLOOM'\n{text}SPARKLOOM"
