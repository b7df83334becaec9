"""An OpenAI endpoint that sends every token at a known time.

A stand-in for an engine, to judge load generators by. Answers are paced from the moment at which the request was
read; what was really sent when is kept and given out at GET /truth (DELETE /truth forgets it). A model name may
carry knobs: "pacing,ttft=0.05,per_chunk=4".
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import ssl
from pathlib import Path

from testbed.standins.pacing.conduct import Conduct
from testbed.standins.pacing.serve import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed pacing", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0: any; the first line printed says which")
    parser.add_argument("--model", default="pacing", help="the name that it serves under")
    parser.add_argument("--key", help="refuse requests without this key (a test's key, no secret)")
    parser.add_argument(
        "--metrics", choices=("sglang", "vllm", "none"), default="sglang", help="in whose words it answers GET /metrics"
    )
    parser.add_argument("--tls", type=Path, help="PEM with certificate and key")
    parser.add_argument("knobs", nargs="*", metavar="KNOB=VALUE", help=f"of {', '.join(vars(Conduct()))}")
    options = parser.parse_args()
    tls = None
    if options.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.tls)
    server = Server(options.model, Conduct.of(options.knobs), options.key, options.metrics)
    asyncio.run(_serve(server, options.host, options.port, tls))
    return 0


async def _serve(server: Server, host: str, port: int, tls: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    listening = await loop.create_server(server.connection, host, port, ssl=tls, backlog=2048)
    print(f"pacing on {listening.sockets[0].getsockname()[1]}", flush=True)
    await ended.wait()
    listening.close()


if __name__ == "__main__":
    raise SystemExit(main())
