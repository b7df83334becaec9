"""One rank: judge the command line, open the transport, meet the others, load, serve, end with the group."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from standin import config as configs
from standin import fabric, facts, group, judge, pace, precedents, refuse, rpc, serve, stages, web
from standin.conduct import Conduct, Died, end
from standin.config import Config
from standin.facts import Facts
from standin.generate import Model
from standin.symptoms import KILLED

BUILDERS = {
    "sglang": configs.from_sglang,
    "vllm": configs.from_vllm,
    "trtllm": configs.from_trtllm,
    "llamacpp": configs.from_llamacpp,
}
TRACE = "Traceback (most recent call last):\n  (stand-in: no frames to show)\n"


def main(engine: str, argv: list[str] | None = None) -> None:
    # Process 1 of a container ignores what it does not handle: a stop during these seconds would wait a minute.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    release = os.environ["STANDIN_RELEASE"]
    words = sys.argv[1:] if argv is None else argv
    try:
        values = judge.judge(engine, release, words)
    except judge.BadArguments as refusal:
        sys.stderr.write(f"{refusal}\n")
        raise SystemExit(refusal.status) from None
    parser = "the release's own parser" if engine in judge.PROGRAMS else "a list of its flags kept by hand"
    unjudged = [word for word in words if word in judge.of_the_fork()]
    but = f", but for what its fork adds: {' '.join(unjudged)}" if unjudged else ""
    print(f"stand-in for {engine} {release}: no GPU here; {parser} accepted the command line{but}", flush=True)
    lends = engine == "llamacpp" and words[:1] == ["rpc-server"]
    try:
        raise SystemExit(asyncio.run(_until_stopped(_lend(values) if lends else _rank(engine, release, values))))
    except rpc.RpcError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(error.status) from None


async def _until_stopped(work: Coroutine[None, None, int]) -> int:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    task, ended = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    return 0


async def _lend(values: dict[str, object]) -> int:
    async with await rpc.lend(values):
        await asyncio.Event().wait()
    return 0


async def _rank(engine: str, release: str, values: dict[str, object]) -> int:
    config = BUILDERS[engine](release, values)
    model = facts.of(config.model)
    try:
        config, warnings = refuse.settle(config, model)
    except refuse.Refusal as refusal:
        print(f"{TRACE}{refusal}", file=sys.stderr, flush=True)
        return 1
    for warning in warnings:
        stages.log(config, f"WARNING {warning}")
    if not model.present:
        print(f"stand-in: no weights of {config.model} on this node, pretending", flush=True)
    serving = asyncio.Event()
    try:
        await _live(config, model, serving)
    except (fabric.FabricError, group.GroupError, Died, OSError) as error:  # OSError: the API's port is taken
        if str(error) != KILLED:
            stages.log(config, f"Scheduler hit an exception: {TRACE}{error}")
        return end(config, error, served=serving.is_set())
    return 0


async def _live(config: Config, model: Facts, serving: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    early = Conduct(config, precedents.Precedent())
    await early.reach("args")
    transport = "IB"
    devices: list[fabric.Device] = []
    if config.nnodes > 1:
        transport, devices = fabric.open_transport(config.rank, bool(early.find("socket")))
    precedent = precedents.find(config, transport)
    if precedent.source:
        print(f"stand-in: behaves as measured in {precedent.source}", flush=True)
    conduct = Conduct(config, precedent)
    await conduct.reach("args")
    formed = await group.form(config, transport, devices)
    formed.hear = lambda message: conduct.note(message["begun"], message["running"])
    formed.held.append(await rpc.borrow(str(config.values.get("rpc") or ""), conduct.bereft))
    ends: list[asyncio.Future[Any]] = [
        asyncio.create_task(formed.broken.wait()),
        loop.create_task(conduct.watch()),
        conduct.fatal,
    ]
    work = asyncio.create_task(_serve(config, model, conduct, precedent, formed, serving))
    await asyncio.wait([work, *ends], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    if conduct.fatal.done():
        raise Died(conduct.fatal.result())
    raise group.GroupError(formed.why)


async def _serve(
    config: Config,
    model: Facts,
    conduct: Conduct,
    precedent: precedents.Precedent,
    formed: group.ProcessGroup,
    serving: asyncio.Event,
) -> None:
    """Loads, then answers; as the engines do it, the port opens only after that."""
    await stages.load(config, model, conduct)
    speed = pace.Pace.of(config, model, precedent)
    if config.rank == 0:
        engine = Model(speed, conduct, config.max_running or 32, formed.tell, formed.together)
        handler = serve.Server(config, model, engine).handle
    else:
        handler = serve.deaf
    if not config.serves:
        await asyncio.Event().wait()
    await conduct.reach("serve")
    async with await web.start(handler, config.host, config.port):
        if config.rank == 0:
            serving.set()
            ready = {"sglang": "The server is fired up and ready to roll!", "llamacpp": "server is listening on"}
            stages.log(config, ready.get(config.engine, "Application startup complete."))
        await asyncio.Event().wait()
