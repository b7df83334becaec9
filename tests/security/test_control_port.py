"""The group's control port attacked from the rail: real supervisors as processes on loopback addresses.

Each is red on the code before the group's secret (commit 00336b1: 19 of 25), where a stranger was told configuration
and build, was admitted with them from any address, and every line was believed. Green there too: lines without an end,
what is no JSON, and the two that ask for a secret that was not there to be told.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.onnode.rank.ranks import Ranks
from tests.security import attacker
from tests.security.attacker import MEMBER, STRANGER, Between, Impostor

Tamper = Callable[[bytes, list[bytes]], list[bytes]]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 2)
    yield ranks
    ranks.end()


@pytest.fixture
def serving(pair: Ranks) -> Ranks:
    pair.start()
    pair.wait(pair.serving)
    return pair


@pytest.fixture
def between(pair: Ranks) -> Iterator[Between]:
    made = Between(pair)
    yield made
    made.end()


def hello(config: str, build: str, **more: Any) -> bytes:
    """As ranks said it before they had a secret."""
    said = {"rank": 1, "config": config, "build": build, "instance": "attack", "epoch": 0, "failures": [], "row": []}
    return json.dumps({**said, **more}).encode() + b"\n"


@pytest.mark.parametrize("source", [STRANGER, MEMBER])
def test_who_knows_hash_and_build_is_neither_told_more_nor_admitted(serving: Ranks, source: str) -> None:
    """The attack of the issue, word for word: ask, learn, come back with what was learnt, and bring failures along."""
    first = attacker.ask(serving, source, hello("x", "x"))
    config = attacker.learnt(rb"rank 0 has (\w+)", first)
    second = attacker.ask(serving, source, hello(config, "x"))
    build = attacker.learnt(rb"rank 0 has (\w+)", second)
    third = attacker.ask(serving, source, hello("c0ffee", build, epoch=99, failures=[0.0] * 9, row=["x"] * 9))
    assert (config, build) == ("unknown", "unknown")
    assert b"c0ffee" not in first + second + third and b"welcome" not in third
    assert source == MEMBER or not first + second + third
    attacker.undisturbed(serving, 2)
    os.kill(serving.status(1)["engine"], signal.SIGKILL)
    serving.wait(lambda: serving.serving(epoch=2))
    assert "down:" not in serving.log(0), "nine failures that nobody had"


def test_a_stranger_s_address_is_reset_unread_and_named_once(serving: Ranks) -> None:
    for _ in range(20):
        assert attacker.ask(serving, STRANGER, b'{"rank": 1}\n') == b""
    assert serving.log(0).count(f"stranger: {STRANGER} was not heard at the control port (1 so far)") == 1


def test_a_recorded_connection_can_be_said_again_to_no_effect(between: Between) -> None:
    """All that rank 1 said from its first hello on, from its own address, to the same rank 0."""
    ranks = between.ranks
    between.start()
    ranks.wait(ranks.serving)
    recorded = b"".join(between.said[-1])
    assert recorded.count(b"\n") > 3
    for source in (MEMBER, STRANGER):
        attacker.ask(ranks, source, recorded)
    attacker.undisturbed(ranks, 1.5)


FORGED = {"lost": "forged", "own": True, "epoch": 1}


def once(tamper: Tamper) -> Callable[[bytes], list[bytes]]:
    """Changes the third line that passes, when there are lines to repeat; all others go on as they are."""
    passed: list[bytes] = []

    def go(line: bytes) -> list[bytes]:
        passed.append(line)
        return tamper(line, passed) if len(passed) == 3 else [line]

    return go


TAMPERS: dict[str, Tamper] = {
    "forged": lambda line, before: [json.dumps(FORGED).encode() + b"\n", line],
    "forged in a proof's place": lambda line, before: [b"0" * 64 + b" " + json.dumps(FORGED).encode() + b"\n", line],
    "changed": lambda line, before: [line.replace(b"true", b"1000")],
    "repeated": lambda line, before: [line, line],
    "left out": lambda line, before: [],
    "of before": lambda line, before: [before[0]],
}


@pytest.mark.parametrize("kind", TAMPERS)
def test_a_line_that_is_not_the_next_word_of_its_rank_ends_the_connection(between: Between, kind: str) -> None:
    """And is not heard: no failure is counted of the one that the group may have none of."""
    ranks = between.ranks
    ranks.plan["limits"]["restarts"] = 0
    between.start()
    ranks.wait(ranks.serving)
    between.up = once(TAMPERS[kind])
    ranks.wait(lambda: "rank 1 on spark2 is gone: its supervisor's connection closed" in ranks.log(0), 5)
    ranks.wait(lambda: ranks.serving(epoch=2))
    assert "forged" not in ranks.log(0) and "down:" not in ranks.log(0)


def test_what_rank_0_said_is_not_believed_when_it_comes_back(between: Between) -> None:
    ranks = between.ranks
    between.start()
    ranks.wait(ranks.serving)
    between.up = once(lambda line, before: [between.told[-1][-1]])
    ranks.wait(lambda: "rank 1 on spark2 is gone: its supervisor's connection closed" in ranks.log(0), 5)
    ranks.wait(lambda: ranks.serving(epoch=2))


def test_rank_1_stops_for_no_forged_word_of_rank_0(between: Between) -> None:
    ranks = between.ranks
    between.start()
    ranks.wait(ranks.serving)
    forged = {"stop": "forged", "round": 7, "down": "forged", "failures": [0.0] * 9, "row": ["x"] * 9}
    between.down = once(lambda line, before: [json.dumps(forged).encode() + b"\n", line])
    ranks.wait(lambda: ranks.serving(epoch=2))
    assert "forged" not in ranks.log(0) + ranks.log(1)


def old_head(plug: socket.socket, first: bytes) -> None:
    """What rank 0 says to a rank that it admits, and starts; as before the secret."""
    for message in ({"welcome": True, "round": 0, "down": ""}, {"beat": True, "present": True, "waiting": ""},
                    {"start": 5}):  # fmt: skip
        plug.sendall(json.dumps(message).encode() + b"\n")
        time.sleep(0.2)


def challenge(plug: socket.socket, first: bytes) -> None:
    plug.sendall(b'{"nonce": "%s", "proof": "%s"}\n' % (b"0" * 64, b"0" * 64))


def echo(plug: socket.socket, first: bytes) -> None:
    """Its own nonce back, and what follows."""
    nonce = attacker.learnt(rb'"nonce": "(\w+)"', first).encode()
    plug.sendall(b'{"nonce": "%s", "proof": "%s"}\n' % (nonce, nonce))


@pytest.mark.parametrize("says", [old_head, challenge, echo])
def test_an_impostor_of_rank_0_starts_nothing_and_learns_nothing(
    pair: Ranks, says: Callable[[socket.socket, bytes], None]
) -> None:
    impostor = Impostor(pair, says)
    try:
        pair.start(1)
        pair.wait(lambda: len(impostor.heard) >= 2)
        time.sleep(1.5)
    finally:
        impostor.end()
    assert not pair.status(1)["engine"] and "engine: started" not in pair.log(1)
    assert b"c0ffee" not in b"".join(impostor.heard) and b"build" not in b"".join(impostor.heard)
    words = {old_head: "ends the connection instead", challenge: "another secret", echo: "another secret"}[says]
    assert words in pair.until(1, "missing")["text"]
    pair.start(0)
    pair.wait(pair.serving)


@pytest.mark.parametrize("source", [STRANGER, MEMBER])
def test_silent_strangers_cost_nothing_and_keep_no_member_out(pair: Ranks, source: str) -> None:
    """300 connections that say nothing, then half a hello, byte by byte: on the old code rank 0 kept every one."""
    pair.start(0)
    pair.until(0, "missing")
    process = pair.processes[0].pid
    before = attacker.descriptors(process), attacker.resident(process)
    with contextlib.ExitStack() as held:
        for number in range(300):
            with contextlib.suppress(OSError):
                plug = held.enter_context(attacker.knock(pair, source))
                plug.sendall(b'{"rank": 1, "nonce": "'[: number % 22])
        assert attacker.descriptors(process) <= before[0] + 40
        pair.wait(lambda: attacker.descriptors(process) <= before[0] + 6, 3)
        assert attacker.resident(process) <= before[1] + 8
        begun = time.monotonic()
        pair.start(1)
        pair.wait(pair.serving, 20)
        assert time.monotonic() - begun < 15
        for _ in range(300):
            with contextlib.suppress(OSError):
                held.enter_context(attacker.knock(pair, source))
        attacker.undisturbed(pair, 1)


def test_who_shows_no_secret_is_let_go_after_five_seconds(serving: Ranks) -> None:
    begun = time.monotonic()
    with attacker.knock(serving, MEMBER, 12) as plug:
        told = attacker.answered(plug)
    assert 4 < time.monotonic() - begun < 8
    assert told.startswith(b'{"refused": ') and b"c0ffee" not in told
    attacker.undisturbed(serving, 0.5)


@pytest.mark.parametrize("said", [b"x" * 10_000_000, b'{"rank": 1, "nonce": "' + b"0" * 9_000_000, b"\n" * 1000])
def test_a_line_without_end_ends_the_connection_at_once(serving: Ranks, said: bytes) -> None:
    """Held on the old code too, with a MiB of it kept."""
    before, begun = attacker.resident(serving.processes[0].pid), time.monotonic()
    attacker.ask(serving, MEMBER, said, seconds=3)
    assert time.monotonic() - begun < 1
    assert attacker.resident(serving.processes[0].pid) <= before + 8
    attacker.undisturbed(serving, 0.5)


def test_a_rank_of_a_build_without_the_secret_is_named_and_told_what_to_do(pair: Ranks) -> None:
    """Words only: the old rank shows the answer to its hello as why it waits."""
    pair.start(0)
    pair.until(0, "missing")
    told = json.loads(attacker.ask(pair, MEMBER, hello("c0ffee", "b")))
    assert set(told) == {"refused"} and "playbooks/serve.yml makes every rank anew" in told["refused"]
    text = pair.until(0, "missing", "came without the group's secret")["text"]
    assert text.startswith("rank 1 on spark2 has not come: what connects from its address came without")
    assert text.endswith("which an older build of ours does not know; playbooks/serve.yml makes every rank anew")


def test_a_group_without_its_secret_starts_nothing_and_says_where_it_comes_from(pair: Ranks) -> None:
    Path(pair.plan["secret"]).unlink()
    pair.start()
    for rank in (0, 1):
        text = pair.until(rank, "refused")["text"]
        assert text.startswith(f"{pair.plan['secret']}: No such file") and "playbooks/serve.yml" in text
    with pytest.raises(OSError, match="refused"):
        attacker.knock(pair, MEMBER)
    pair.secret()
    pair.wait(pair.serving)


def test_a_secret_that_was_renewed_needs_no_restart(serving: Ranks) -> None:
    """Ranks that are connected stay so; who comes after it needs the new one."""
    Path(serving.plan["secret"]).unlink()
    serving.secret()
    attacker.undisturbed(serving, 1)
    os.kill(serving.processes[1].pid, signal.SIGTERM)
    serving.processes[1].wait(20)
    serving.start(1)
    serving.wait(lambda: serving.serving(epoch=2))


def test_the_secret_is_in_no_environment_argument_log_or_status(serving: Ranks) -> None:
    secret = Path(serving.plan["secret"]).read_text()
    for rank, process in serving.processes.items():
        for pid in (process.pid, serving.status(rank)["engine"]):
            shown = Path(f"/proc/{pid}/environ").read_text() + Path(f"/proc/{pid}/cmdline").read_text()
            assert secret not in shown
        assert secret not in serving.log(rank) + json.dumps(serving.status(rank))
