"""Where a command's ranks go: a Spark has one GPU, so tensor, pipeline and data parallelism count Sparks."""

from __future__ import annotations

from collections.abc import Mapping

from sparkloom.base.finding import Finding
from sparkloom.inputs.importers import Found, Leftovers, Started
from sparkloom.launch.engines import base
from sparkloom.launch.imported.command import Said

MOST = 8  # Sparks of one launch


def parallel(said: Said, found: Found, adapter: base.Adapter, leftover: Leftovers) -> dict[str, int]:
    sizes = {part: said.parts.get(part, 1) for part in ("tp", "pp", "dp")}
    if adapter.lends and "pp" not in said.parts and found.least_nodes > 1:
        sizes["pp"] = found.least_nodes  # who lends memory is added by whoever runs it
    nodes = sizes["tp"] * sizes["pp"] * sizes["dp"]
    ep = sizes["tp"] * sizes["dp"] if said.experts else said.parts.get("ep", 1)
    if said.parts.get("nodes", nodes) != nodes:
        leftover.add(f"nnodes {said.parts['nodes']}", f"a Spark has one GPU: these ranks are {nodes} Sparks here")
    if found.least_nodes > nodes:
        leftover.add(f"at least {found.least_nodes} nodes", f"the command's ranks (tp x pp x dp) fill {nodes}")
    if found.most_nodes is not None and found.most_nodes < nodes:
        leftover.add(f"at most {found.most_nodes} nodes", f"the command's ranks (tp x pp x dp) fill {nodes}")
    placed = {"nodes": nodes, "tp": sizes["tp"], "pp": sizes["pp"]}
    return placed | ({"dp": sizes["dp"]} if sizes["dp"] > 1 else {}) | {"ep": ep}


def backend(said: Said, placed: Mapping[str, int], leftover: Leftovers) -> None:
    if not said.backend:
        return
    many = placed["nodes"] > 1
    if said.backend == "ray":
        why = (
            "translated: ranks meet by vLLM's own --nnodes, --node-rank and --headless"
            if many
            else "one Spark needs no Ray"
        )
        leftover.add("--distributed-executor-backend ray", why)
    elif said.backend != "mp" or not many:
        said.flags["distributed_executor_backend"] = said.backend


def too_many(placed: Mapping[str, int], start: Started) -> list[Finding]:
    if placed["nodes"] <= MOST:
        return []
    message = f"tp x pp x dp = {placed['nodes']} ranks; a Spark has one GPU and a launch has up to {MOST} Sparks"
    fix = "this was written for larger machines: `sparkloom profile new MODEL --nodes N` places it on Sparks"
    return [Finding(start.where, "too-many-nodes", message, expected="", fix=fix)]
