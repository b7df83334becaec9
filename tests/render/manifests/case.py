"""Launches for the tests of the manifests."""

from __future__ import annotations

from functools import cache
from typing import Any

from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import load
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.render import manifests
from sparkloom.render.manifests.names import CONFIG_HASH

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SOLO = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
TRTLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"
PIPELINE = "nvidia--minimax-m2.5-nvfp4--pp3"
RPC = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"

Object = dict[str, Any]


_shipped = cache(load)
_loaded = cache(profile.load)


def cluster(**changes: Any) -> Cluster:
    """The shipped inventory, with a few values changed."""
    return _shipped().model_copy(update=changes)


def one_rail() -> Cluster:
    fabric = _shipped().fabric
    return cluster(fabric=fabric.model_copy(update={"rails": fabric.rails[:1]}))


def ring() -> Cluster:
    """The first three of the shipped inventory, cabled to each other."""
    nodes = _shipped().nodes[:3]
    fabric = _shipped().fabric.model_copy(update={"ring": [node.name for node in nodes]})
    return cluster(nodes=nodes, fabric=fabric)


def launch(name: str = ULTRA, where: Cluster | None = None, *overrides: str) -> Launch:
    return resolve(profile.load(name, overrides=overrides) if overrides else _loaded(name), where or cluster())


def build(name: str = ULTRA, where: Cluster | None = None, *overrides: str) -> list[Object]:
    where = where or cluster()
    return objects(launch(name, where, *overrides), where)


def objects(launch: Launch, where: Cluster, policy: str = "refuse") -> list[Object]:
    return manifests.build(launch, where, policy)[0]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def pods(objects: list[Object]) -> list[Object]:
    return [item["spec"]["template"] for item in of_kind(objects, "StatefulSet")]


def engines(objects: list[Object]) -> list[Object]:
    return [pod["spec"]["containers"][0] for pod in pods(objects)]


def hashes(objects: list[Object]) -> set[str]:
    return {pod["metadata"]["annotations"][CONFIG_HASH] for pod in pods(objects)}
