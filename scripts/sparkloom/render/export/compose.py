"""One compose file for all nodes: a service per rank, each behind a profile of its own (`--profile rank0`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkloom.inputs.importers.compose import KEPT
from sparkloom.inputs.profile._text import block
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import template
from sparkloom.render.export import commands, host


def write(launch: Launch, facts: Mapping[str, Any]) -> str:
    head = [*commands.head(launch), "Then on each node: docker compose --profile rankN up -d, N from 0"]
    data: dict[str, Any] = {"services": {f"rank{rank.index}": _service(launch, rank) for rank in launch.ranks}}
    if texts := host.texts(launch):
        data["configs"] = {_name(path): {"content": _dollars(text)} for path, text in texts.items()}
    if host.key_place(launch):
        data["secrets"] = {"engine-key": {"file": f"./{host.KEY}"}}
    return "".join(f"# {line}\n" for line in head) + block({**data, KEPT: _dollars(dict(facts))}, 3)


def _service(launch: Launch, rank: Rank) -> dict[str, Any]:
    words = host.words(launch, rank)
    service = template.one(
        "export/service",
        rank=rank.index,
        image=launch.image,
        program=words[0],
        words=[_dollars(word) for word in words[1:]],
        environment=_dollars(host.environment(rank)),
        volumes=host.folders(launch),
    )
    if launch.fabric:
        service |= {"devices": ["/dev/infiniband"], "cap_add": ["IPC_LOCK"]}
    if texts := host.texts(launch):
        service["configs"] = [{"source": _name(path), "target": path} for path in texts]
    if not rank.index and (place := host.key_place(launch)):
        service["secrets"] = [{"source": "engine-key", "target": place}]
    return service


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1].replace(".", "-")


def _dollars(value: Any) -> Any:
    """Compose replaces `$NAME`; here every text means itself."""
    if isinstance(value, dict):
        return {key: _dollars(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_dollars(item) for item in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
