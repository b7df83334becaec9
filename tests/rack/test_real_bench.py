"""`sparkloom bench` against engines themselves: its figures are a bare ear's at the same stream, and the engine's own.

Between bench and the engine stands a relay of this test: what it notes is no client of ours.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from testbed.base import names
from testbed.beds.rack import inventory
from testbed.make import nodeimage
from tests.rack import real
from tests.rack.running import run
from tests.rack.test_real_sglang import GLOO

pytestmark = real.MARKS
LLAMA = ("smollm2-135m-instruct--llamacpp-2node", "llamacpp", 8080, (), "llamacpp:tokens_predicted_total")
SGLANG = ("tiny-dense--sglang-2node", "sglang", 30000, GLOO, "sglang:generation_tokens_total")


@dataclass
class Heard:
    """One request as it went over the wire: when it was sent, and when each piece of its answer came."""

    sent: float
    pieces: list[float] = field(default_factory=list)
    rest: bytes = b""

    @property
    def first(self) -> float:
        return self.pieces[0] - self.sent

    def took(self, data: bytes, now: float) -> None:
        """Events with text in them, however the bytes were cut."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                deltas = [choice.get("delta") or {} for choice in event.get("choices") or ()]
                if any(delta.get("content") or delta.get("reasoning_content") for delta in deltas):
                    self.pieces.append(now)


class Relay:
    """Passes bytes on and notes their moments; one request at a time on each connection."""

    def __init__(self, target: int) -> None:
        self.target, self.heard = target, list[Heard]()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        while True:
            try:
                client, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        engine = socket.create_connection(("127.0.0.1", self.target))
        mine: Heard | None = None
        while True:
            ready, _, _ = select.select([client, engine], [], [])
            for end in ready:
                data = end.recv(1 << 16)
                now = time.monotonic()
                if not data:
                    client.close()
                    engine.close()
                    return
                (engine if end is client else client).sendall(data)
                if end is client and data.startswith(b"POST /v1/chat/completions"):
                    mine = Heard(now)
                    self.heard.append(mine)
                elif end is client and mine:
                    mine.sent = now if not mine.pieces else mine.sent  # the rest of the request
                elif mine:
                    mine.took(data, now)


@contextmanager
def forwarded(group: real.Served) -> Iterator[int]:
    """A port of this machine that leads to rank 0's engine."""
    tool = [str(nodeimage.kubectl()), "--kubeconfig", str(names.KUBECONFIG), "-n", "sparkloom"]
    command = [*tool, "port-forward", group.pod(0)]
    with subprocess.Popen([*command, f":{group.port}"], stdout=subprocess.PIPE, text=True) as tunnel:
        assert tunnel.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", tunnel.stdout.readline())
        assert found
        yield int(found[1])
        tunnel.terminate()


@pytest.fixture(scope="module", params=[LLAMA, SGLANG], ids=["llama.cpp", "SGLang"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[real.Served, str]]:
    name, engine, port, words, counter = request.param
    with real.profiles():
        group = real.Served(name, engine, port, "tiny", ("spark1", "spark2"), 420.0, words)
        group.start()
        yield group, counter


@pytest.fixture(scope="module")
def measured(served: tuple[real.Served, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run of bench at two levels, what the relay heard meanwhile, and what the engine counted."""
    group, counter = served
    folder = tmp_path_factory.mktemp("bench")
    key = folder / "key"
    key.write_text(group.inside(0, "print(open('/sparkloom/key/key').read().split()[0])"))
    with forwarded(group) as port:
        relay = Relay(port)
        before = group.metric(counter)
        words = ["--url", f"http://127.0.0.1:{relay.port}", "-n", "1,3", "--requests", "3", "--max-tokens", "48"]
        words += ["--ignore-eos", "--warmup", "0", "--api-key-file", str(key), "-o", str(folder), "-q", "--json"]
        done = run("sparkloom", "bench", *words)
        made = group.metric(counter) - before
    assert done.returncode in (0, 1), done.stderr  # 1: random weights answer nonsense, and the guard says so
    # llama.cpp leaves a connection after a stream without a word of it: what bench sent there it sends again
    heard = [each for each in relay.heard if each.pieces]
    return {"result": json.loads(done.stdout), "heard": heard, "made": made, "said": done.stderr}


def test_its_tokens_are_the_engines_own(measured: dict[str, Any]) -> None:
    rows = [row for level in measured["result"]["levels"] for row in level["per_request"]]
    assert len(rows) == 6 and all(row["ok"] and row["tokens_from"] == "engine" for row in rows), rows
    counted = sum(row["output_tokens"] for row in rows)
    assert counted == 6 * 48
    # the supervisor's own question may fall into it: a token or two
    assert counted <= measured["made"] <= counted + 8, measured["made"]


def test_first_token_and_pace_are_those_of_a_bare_ear(measured: dict[str, Any]) -> None:
    """Of single streams: the same bytes, heard one hop earlier. A chunk may hold several tokens.

    A busy machine makes either listener wait for a core, now and then: what bench adds by itself is in all three.
    """
    (alone, _) = measured["result"]["levels"]
    assert len(measured["heard"]) == 6
    late, off = [], []
    for row, heard in zip(alone["per_request"], measured["heard"], strict=False):
        assert row["chunks"] == len(heard.pieces)
        late.append(abs(row["ttft_ms"] / 1000 - heard.first) - max(0.02, 0.1 * heard.first))
        pace = (48 - 48 / len(heard.pieces)) / (heard.pieces[-1] - heard.pieces[0])
        off.append(abs(row["tokens_per_sec"] / pace - 1))
    assert min(late) < 0 and median(off) < 0.15, (late, off)


def test_several_streams_add_up(measured: dict[str, Any]) -> None:
    (_, three) = measured["result"]["levels"]
    assert three["ok"] == 3
    spans = [heard.pieces[-1] - heard.sent for heard in measured["heard"][3:]]
    begun = min(heard.sent for heard in measured["heard"][3:])
    wall = max(heard.pieces[-1] for heard in measured["heard"][3:]) - begun
    assert len(spans) == 3 and abs(three["wall_tok_s"] - 3 * 48 / wall) < 0.15 * 3 * 48 / wall


def test_its_gauges_are_read_and_nonsense_is_called_so(
    measured: dict[str, Any], served: tuple[real.Served, str]
) -> None:
    """llama.cpp serves a model that speaks, SGLang random weights."""
    for level in measured["result"]["levels"]:
        assert level["engine"], level
        assert "note" not in level["engine"] or "somebody else" not in level["engine"]["note"], level["engine"]
    speaks = served[0].engine == "llamacpp"
    verdict = measured["result"]["levels"][0]["guard"]["verdict"]
    assert (measured["result"]["valid"], verdict) == ((True, "ok") if speaks else (False, "garbage"))


def test_the_whole_way_through_the_endpoint(served: tuple[real.Served, str], tmp_path: Path) -> None:
    """By the site: TLS, key, and over which rails."""
    done = run("sparkloom", "bench", "-i", str(inventory.path()), "-n", "1", "--requests", "1", "--max-tokens", "32",
               "--ignore-eos", "-o", str(tmp_path), "-q", "--json")  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert result["levels"][0]["ok"] == 1 and result["provenance"]["transport"], result["provenance"]
