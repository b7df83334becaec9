"""One rank: judge the command line, open the transport, meet the others, load, serve, end with the group."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from standin import config as configs
from standin import fabric, group, judge, serve, stages

BUILDERS = {"sglang": configs.from_sglang, "vllm": configs.from_vllm}


def main(engine: str) -> None:
    release = os.environ["STANDIN_RELEASE"]
    try:
        values = judge.judge(engine, release, sys.argv[1:])
    except judge.Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        raise SystemExit(2) from None
    config = BUILDERS[engine](release, values)
    print(
        f"stand-in for {engine} {release}: no GPU and no weights here; the command line was judged by the real parser",
        flush=True,
    )
    try:
        asyncio.run(_run(config))
    except (fabric.FabricError, group.GroupError) as error:
        stages.log(config, f"Scheduler hit an exception: Traceback (most recent call last):\n{error}")
        raise SystemExit(1) from None


async def _run(config: configs.Config) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    state = serve.State(config)
    work = asyncio.create_task(_live(config, state))
    ended = asyncio.create_task(stop.wait())
    await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    work.cancel()


async def _live(config: configs.Config, state: serve.State) -> None:
    formed = None
    if config.nnodes > 1:
        transport, devices = fabric.open_transport(config.rank)
        formed = await group.form(config, transport, devices)
        fabric.say(
            config.rank,
            f"comm 0x1 rank {config.rank} nranks {config.nnodes} cudaDev 0 nvmlDev 0 busId f01000 - Init COMPLETE",
        )
    server = await serve.start(state, config.host, config.port)
    await stages.load(config)
    state.ready = True
    if config.rank == 0:
        stages.log(config, "The server is fired up and ready to roll!")
    async with server:
        if formed is None:
            await asyncio.Event().wait()
        await formed.broken.wait()  # type: ignore[union-attr]
    raise group.GroupError(formed.why)  # type: ignore[union-attr]
