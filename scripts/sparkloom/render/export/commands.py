"""Plain `docker run` commands, one per node, ready to paste; facts stand below them as comments."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base import amount
from sparkloom.inputs.importers.found import by_flag, marked
from sparkloom.inputs.profile._text import block
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render.export import host
from sparkloom.render.manifests import names


def write(launch: Launch, facts: Mapping[str, Any]) -> str:
    parts = ["\n".join(f"# {line}".rstrip() for line in head(launch)), *_files(launch)]
    parts += ["\n".join(_rank(launch, rank)) for rank in launch.ranks]
    read = "# What follows is read by `sparkloom import`; the commands above go before it."
    parts.append(f"{read}\n{marked(block(facts, 2))}")
    return "\n\n".join(parts)


def head(launch: Launch) -> Iterator[str]:
    """What a person has to have before the first of these commands."""
    model = launch.profile.profile.model
    yield f"{launch.profile.name}: {launch.engine} {launch.release} on {amount.of(len(launch.ranks), 'Spark')}"
    revision = f" --revision {model.revision}" if model.revision else ""
    yield f"First, on every node: hf download {model.id}{revision}"
    if host.key_place(launch):
        made = f"printf 'api-key: %s\\n' \"$(openssl rand -hex 24)\" > {host.KEY}; chmod 600 {host.KEY}"
        yield f"The API key, on the first node: {made}"
    for rank in launch.ranks if launch.fabric else ():
        told = ", ".join(f"{end.address} on {end.interface}" for end in rank.place.endpoints)
        yield f"{rank.place.node.name} must have {told}"


def _files(launch: Launch) -> Iterator[str]:
    for path, text in host.texts(launch).items():
        name = path.rsplit("/", 1)[-1]
        yield f"cat > {shlex.quote(name)} <<'SPARKLOOM'\n{text}SPARKLOOM"


def _rank(launch: Launch, rank: Rank) -> Iterator[str]:
    words = host.words(launch, rank)
    yield f"# --- on {rank.place.node.name} (rank {rank.index})"
    yield f"docker run -d --name {names.rank(launch, rank.index)} --gpus all --network host --ipc host \\"
    rails = " --cap-add IPC_LOCK --device /dev/infiniband" if launch.fabric else ""
    yield f"  --ulimit memlock=-1 --ulimit stack=67108864{rails} \\"
    for volume in _volumes(launch, rank):
        yield f"  -v {volume} \\"
    for name, value in host.environment(rank).items():
        yield f"  -e {shlex.quote(f'{name}={value}')} \\"
    yield f"  --entrypoint {shlex.quote(words[0])} {shlex.quote(launch.image)} \\"
    yield "  " + " \\\n  ".join(shlex.join(flag) for flag in by_flag(words[1:]))


def _volumes(launch: Launch, rank: Rank) -> Iterator[str]:
    yield from (f'"{folder}"' for folder in host.folders(launch))
    for path in host.texts(launch):
        yield f'"$PWD/{path.rsplit("/", 1)[-1]}:{path}:ro"'
    if not rank.index and (place := host.key_place(launch)):
        yield f'"$PWD/{host.KEY}:{place}:ro"'
