"""100,000 hostile messages to a supervisor's control port and 100,000 to its HTTP: no crash, no hang, bounded memory.

The supervisor is the real program in a process of its own. Of those that need a connection each, `make test` sends as
many as fit into its time and gives the rest to the code behind the socket; `make test-fuzz`: all by sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from sparkloom.onnode.rank import wire
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.probes import LONGEST
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.wire import Wire
from tests.later import SKIPPED
from tests.onnode.rank.ranks import Ranks
from tests.onnode.rank.test_probes import Answerer
from tests.security import attacker, fuzz
from tests.security.attacker import HEAD, MEMBER, STRANGER

ALL = 100_000
BY_SOCKET = 3_000  # in make test
TOGETHER = 50  # words in one write
ANSWERS = (b"100", b"200", b"400", b"404", b"405", b"431", b"503", b"505")
CHANCE = re.compile(rb"[0-9a-f]{64}")  # nonces and proofs: in 100,000 of them any six digits come up
SEED = int(os.environ.get("SPARKLOOM_FUZZ_SEED", "13"))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 2)
    yield ranks
    ranks.end()


@pytest.fixture
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Nobody attacks it."""
    ranks = Ranks(tmp_path_factory.mktemp("beside"), 1)
    ranks.start()
    ranks.wait(ranks.serving)
    yield ranks
    ranks.end()


def serving(pair: Ranks) -> Ranks:
    pair.start()
    pair.wait(pair.serving)
    return pair


def by_http(pair: Ranks, beside: Ranks, count: int) -> None:
    chance = random.Random(SEED)
    questions = (fuzz.question(chance) for _ in itertools.count())
    with fuzz.Watch(serving(pair), beside) as watch:
        for asked in fuzz.batches(questions, count):
            for text, told in zip(asked, fuzz.batch(HEAD, pair.plan["probe_port"], STRANGER, asked), strict=True):
                assert not told or told[9:12] in ANSWERS, (text, told)
                assert told[9:12] != b"200" or b"/key" not in text.split(b"\r\n")[0], (text, told)
    print(watch.judge())
    attacker.undisturbed(pair, 0.5)


def by_strangers(pair: Ranks, beside: Ranks, count: int) -> None:
    """From an address outside the plan and from a member's, while that member serves."""
    chance = random.Random(SEED)
    hellos = (fuzz.hello(chance) for _ in itertools.count())
    with fuzz.Watch(serving(pair), beside) as watch:
        for number, asked in enumerate(fuzz.batches(hellos, count)):
            source = STRANGER if number % 4 == 0 else MEMBER
            for told in fuzz.batch(HEAD, pair.plan["control_port"], source, asked):
                words = CHANCE.sub(b"", told)
                assert b"c0ffee" not in words and b"welcome" not in words, told
                assert source == MEMBER or not told
    print(watch.judge())
    attacker.undisturbed(pair, 0.5)


def test_hostile_questions_over_http(pair: Ranks, beside: Ranks) -> None:
    by_http(pair, beside, BY_SOCKET)


def test_hostile_hellos_at_the_control_port(pair: Ranks, beside: Ranks) -> None:
    by_strangers(pair, beside, BY_SOCKET)


@SKIPPED
@pytest.mark.more
@pytest.mark.parametrize("attack", [by_http, by_strangers])
def test_all_of_them_by_sockets(attack: object, pair: Ranks, beside: Ranks) -> None:
    assert callable(attack)
    attack(pair, beside, ALL)


def test_hostile_questions_to_the_code_that_reads_them(tmp_path: Path) -> None:
    chance = random.Random(SEED + 1)
    member = {"rank": 0, "node": "spark1", "address": "127.0.0.1"}
    told = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1, "members": [member]}
    probes = Answerer(StatusLog(GroupPlan.of({**told, "run": str(tmp_path)}), 0))

    worst = 0.0
    for _ in range(ALL - BY_SOCKET):
        text, begun = fuzz.question(chance)[:LONGEST], time.monotonic()
        answer = probes.told(text)
        worst = max(worst, time.monotonic() - begun)
        assert not answer or answer[9:12] in ANSWERS, (text, answer)
        assert answer[9:12] != b"200" or b"/key" not in text.split(b"\r\n")[0], text
    assert worst < 1


def test_hostile_words_of_a_rank_that_knows_the_secret(pair: Ranks, beside: Ranks) -> None:
    """By sockets, each proved: it may stop the group, that is a rank's right; it may not end or fill rank 0."""
    count = ALL - BY_SOCKET
    pair.start(0)
    pair.until(0, "missing")
    chance, sent = random.Random(SEED + 2), 0
    with fuzz.Watch(pair, beside) as watch:
        while sent < count:
            plug, session = fuzz.proved(pair)
            threading.Thread(target=attacker.answered, args=(plug,), daemon=True).start()
            with contextlib.suppress(OSError), plug:
                for _ in range(chance.randrange(1, 60)):
                    words = [session.seal(fuzz.word(chance)) + b"\n" for _ in range(TOGETHER)]
                    plug.sendall(b"".join(words))
                    sent += TOGETHER
                plug.shutdown(socket.SHUT_RDWR)
    print(watch.judge())
    assert "\x1b" not in pair.log(0)
    pair.processes[0].send_signal(signal.SIGTERM)
    assert pair.processes[0].wait(30) == 0, "it still goes when it is told to"
    pair.start()
    pair.wait(pair.serving)


def test_hostile_answers_of_who_claims_to_be_rank_0() -> None:
    """The follower's side of the same code: junk is an end or a refusal, never an error."""
    chance = random.Random(SEED + 3)

    async def meet(junk: bytes) -> None:
        reader = asyncio.StreamReader(limit=wire.CHUNK)
        reader.feed_data(junk)
        reader.feed_eof()
        with pytest.raises(wire.Unproved):
            await wire.meet(Wire(reader, MagicMock(is_closing=lambda: True)), b"s" * 64, 1)

    async def all_of_them() -> None:
        good = b'{"nonce": "%s", "proof": "%s"}\n' % (b"0" * 64, b"1" * 64)
        for _ in range(5000):
            await meet(fuzz.spoilt(chance, good) if chance.random() < 0.5 else fuzz.noise(chance, 600))

    asyncio.run(all_of_them())
