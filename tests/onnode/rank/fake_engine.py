"""An engine as small as possible: NCCL's words, a scheduler process, on rank 0 a port that streams tokens.

`fake_engine.py RANK PORT FOLDER`; FOLDER/rankN.mode changes what it does: when it starts and while it runs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RANK, PORT, FOLDER = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
HEAD = f"node{RANK}:{os.getpid()}:{os.getpid()} [0] NCCL INFO"
IB = "NET/IB : Using [0]rocep1s0f0v0:1/RoCE [1]roceP2p1s0f0v0:1/RoCE [RO]; OOB net1:127.0.0.1<0>"


def mode() -> str:
    try:
        return (FOLDER / f"rank{RANK}.mode").read_text()
    except FileNotFoundError:
        return ""


def nccl(kind: str, late: float) -> None:
    network, rails = ("Socket", 1) if kind == "socket" else ("IB", 1 if kind == "one-rail" else 2)
    lines = [IB.replace(" [1]roceP2p1s0f0v0:1/RoCE", "") if rails == 1 else IB, f"Using network {network}"]
    if network == "Socket":
        lines[0] = "NET/IB : No device found."
    comm = f"comm 0x1 rank {RANK} n"
    lines += [f"ncclCommInitRankConfig {comm}ranks 2 cudaDev 0 - Init START", f"{comm}Ranks 2 nNodes 2 localRanks 1"]
    lines += [f"ncclCommInitRankConfig {comm}ranks 2 cudaDev 0 - Init COMPLETE"]
    lines += [f"Channel 0{n}/0 : {RANK}[0] -> {1 - RANK}[0] [send] via NET/{network}/{n}" for n in range(rails)]
    words = "".join(f"{HEAD} {line}\n" for line in [*lines, "Connected all rings, use ring PXN 0 GDR 0"])
    say = threading.Timer(late, lambda: print(words, end="", flush=True))
    say.start()
    if not late:
        say.join()


def more() -> str:
    """Other counters that a test wants on the page."""
    try:
        return (FOLDER / "counters").read_text()
    except FileNotFoundError:
        return ""


class Api(BaseHTTPRequestHandler):
    answered = 0

    def _freeze(self) -> None:
        """As llama.cpp when its lender is frozen: it listens, and what was asked waits, its counters too."""
        while "frozen" in mode():
            time.sleep(0.1)

    def log_message(self, *_: object) -> None:
        pass

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._freeze()
        if self.path == "/metrics":
            return self._reply(200, f"fake:running 0\nfake:tokens {Api.answered}\n{more()}".encode())
        if self.path == "/v1/models":
            return self._reply(200, json.dumps({"data": [{"id": "fake"}]}).encode())
        self._reply(503 if "no-token" in mode() else 200, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._freeze()
        Api.answered += 1
        while "slow-request" in mode():
            time.sleep(0.05)
        said = {} if "no-token" in mode() else {"content": "hello"}
        self._reply(200, b"data: " + json.dumps({"choices": [{"delta": said}]}).encode() + b"\n\ndata: [DONE]\n")


def lend(address: str, port: int) -> None:
    """As llama.cpp's two programs: rank 0 looks for the other one once, and ends when it is not there."""
    if RANK:
        time.sleep(1.5)
        lent = socket.create_server((address, port))
        threading.Thread(target=lambda: [lent.accept() for _ in iter(int, 1)], daemon=True).start()
        return
    try:
        socket.create_connection((address, port), 5).close()
    except OSError:
        os._exit(139)


def main() -> None:
    begun = mode()
    if lends := os.environ.get("FAKE_LENDS"):
        lend("127.0.0.12", int(lends))
    print(f"arguments read, the key is {os.environ.get('HF_TOKEN', 'unset')}", flush=True)
    if begun.startswith("crash "):
        print(begun.removeprefix("crash "), flush=True)
        sys.exit(7)
    if "ignore-term" in begun:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    late = 3.0 if "late" in begun else 0.0  # a busy machine hands its words on after rank 0's first token
    nccl("socket" if "socket" in begun else "one-rail" if "one-rail" in begun else "roce", late)
    sleeper = "import time; time.sleep(600)"
    scheduler = subprocess.Popen(["sglang::scheduler_TP0", "-c", sleeper], executable=sys.executable)
    stray = [sys.executable, "-c", f"import os; os.setsid(); {sleeper}"]
    subprocess.Popen(stray)  # leaves the process group, as daemons do
    (FOLDER / f"rank{RANK}.scheduler").write_text(str(scheduler.pid))
    if RANK == 0:
        server = ThreadingHTTPServer(("127.0.0.1", PORT), Api)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(0.1)
        if (now := mode()).startswith("say "):
            (FOLDER / f"rank{RANK}.mode").unlink()
            print(now.removeprefix("say "), flush=True)
        if now.startswith("die "):
            (FOLDER / f"rank{RANK}.mode").unlink()
            print(now.removeprefix("die "), flush=True)
            os._exit(9)


main()
