"""The program as its pod starts it, between real sockets: who asks, engines, and the cluster's API."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

from tests.onnode.waker.loopback import Model, Router, Site, Told, Waker, site
from tests.until import until


def awake(made: Site, waker: Waker, name: str) -> Model:
    for one in made.models[name].sets:
        made.cluster.scale(one, 1)
    until(lambda: waker.state(name) == "awake", 20)
    return made.models[name]


def test_a_stream_is_held_until_its_group_is_awake(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        model, waker = made.models["chat"], made.waker()
        assert waker.state("chat") == "asleep"
        told = waker.whole("chat")
        assert told.awake and (told.status, told.code, told.again) == (503, "model_wakes", "5"), "for a client in words"
        assert [(one, 1) for one in model.sets] == made.cluster.changes
        assert waker.series('sparkloom_waker_wakings_total{group="chat",model="chat",result="ready"}') == 1
        begun = time.monotonic()
        assert waker.whole("chat").awake and time.monotonic() - begun < 1
        assert not model.asked, "its router asks it"


def test_a_stopped_group_is_started_for_nobody(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.cluster.stops = {"chat": "anna@laptop, 2026-11-26 11:20 UTC"}
        waker = made.waker()
        for stream in (True, False):
            told = waker.whole("chat", stream=stream)
            assert (told.status, told.code, told.again, told.awake) == (503, "model_stopped", "60", False)
            assert "is stopped by anna@laptop, 2026-11-26 11:20 UTC" in told.words
        assert waker.state("chat") == "stopped" and not made.cluster.changes


def test_who_does_not_show_the_engine_s_key_wakes_nobody(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.tell(chat={"proof": hashlib.sha256(b"sk-own").hexdigest()})
        waker = made.waker()
        for key in ("", "sk-else", "sk-own2"):
            told = waker.whole("chat", key=key)
            assert (told.status, told.code, told.awake) == (503, "model_not_up", False)
        assert waker.state("chat") == "asleep" and not made.cluster.changes
        assert waker.whole("chat").awake


def test_awake_is_said_when_the_router_knows_it_too(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=0.1) as made:
        made.routers[0].away = {"chat"}
        waker = made.waker()
        told = waker.whole("chat", stream=False)
        assert waker.state("chat") == "awake" and not told.awake and (told.code, told.again) == ("model_wakes", "5")
        made.routers[0].away = set()
        assert waker.whole("chat").awake


def test_one_that_has_gone_since_the_last_look_is_not_called_awake(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        model = awake(made, waker, "chat")
        model.ready = False
        waiting = waker.ask("chat")
        time.sleep(1)
        model.ready = True
        begun = time.monotonic()
        assert Told.of(waiting).awake and time.monotonic() - begun > 0.1
        waiting.close()


def test_bodies_are_thrown_away(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        waker = made.waker()
        before = _memory(waker)
        waiting = [waker.ask("chat", body=b"x" * (8 << 20)) for _ in range(12)]
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 12, 20)
        assert _memory(waker) - before < 24 << 20
        for one in waiting:
            one.close()


def _memory(waker: Waker) -> int:
    text = Path(f"/proc/{waker.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def test_all_who_ask_share_one_start(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        waiting = [waker.ask("chat") for _ in range(64)]
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 64, 20)
        full = waker.whole("chat")
        assert (full.status, full.code, full.again) == (503, "queue_full", "5")
        assert all(Told.of(one).awake for one in waiting)
        assert made.cluster.changes == [("chat-rank0", 1), ("chat-rank1", 1)]
        for one in waiting:
            one.close()


def test_without_a_stream_it_is_said_when_to_try_again(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=8.0) as made:
        waker = made.waker()
        begun = time.monotonic()
        told = waker.whole("chat", stream=False)
        assert 4 < time.monotonic() - begun < 8
        assert (told.status, told.awake, told.code, told.again) == (503, False, "model_wakes", "60")
        assert told.words.startswith("chat starts since ") and "try again in 8 min" in told.words
        until(lambda: waker.state("chat") == "awake", 20)
        assert waker.whole("chat", stream=False).awake


def test_without_a_stream_one_that_is_nearly_there_is_waited_for(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=1.0) as made:
        assert made.waker().whole("chat", stream=False).awake


def test_a_client_that_leaves_waits_no_more_and_what_was_begun_goes_on(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=4.0) as made:
        waker = made.waker()
        connection = waker.ask("chat")
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 1, 20)
        connection.close()
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 0, 3)
        until(lambda: waker.state("chat") == "awake", 20)


def test_an_idle_group_sleeps_and_one_in_use_does_not(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.tell(chat={"idle_seconds": 3})
        waker = made.waker()
        model = awake(made, waker, "chat")
        made.routers[0].counts["chat"] = (1, 1)  # a request on its way
        time.sleep(9)
        assert made.cluster.up("chat") == 2
        made.routers[0].counts["chat"] = (1, 0)
        model.clients = 1  # somebody who goes around the router
        time.sleep(9)
        assert made.cluster.up("chat") == 2
        model.clients = 0
        until(lambda: waker.state("chat") == "asleep", 20)
        assert waker.series('sparkloom_waker_sleeps_total{group="chat",model="chat"}') == 1
        assert made.cluster.changes[-2:] == [("chat-rank0", 0), ("chat-rank1", 0)]
        assert waker.whole("chat").awake  # and wakes again


def test_what_cannot_be_read_counts_as_use(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.tell(chat={"idle_seconds": 2})
        waker = made.waker()
        awake(made, waker, "chat")
        made.routers[0].listening.close()
        time.sleep(8)
        assert made.cluster.up("chat") == 2
        made.routers[0].listening.open()
        made.routers[0].counts = {}  # it knows nothing of the group
        time.sleep(8)
        assert made.cluster.up("chat") == 2
        made.routers[0].counts = {"chat": (0, 0)}  # made anew: it counts from nothing
        until(lambda: made.cluster.up("chat") == 0, 20)


def test_two_routers_of_a_rollout_are_both_looked_at(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.tell(chat={"idle_seconds": 2})
        old = Router("router-0", f"{made.net}.201")
        old.counts["chat"] = (500, 1)
        made.routers.append(old)
        waker = made.waker()
        awake(made, waker, "chat")
        time.sleep(8)
        assert made.cluster.up("chat") == 2  # the old one still streams
        made.routers.remove(old)
        old.listening.close()
        until(lambda: made.cluster.up("chat") == 0, 20)


def test_mates_take_turns(tmp_path: Path) -> None:
    with site(tmp_path, "day", "night") as made:
        turn = {"turn": "desk", "idle_seconds": 4}
        made.tell(day=turn, night=turn)
        waker = made.waker()
        assert waker.whole("day").awake
        told = waker.whole("night")
        assert (told.status, told.code, told.again) == (503, "model_in_turn", "5")
        assert "night takes turns with day" in told.words
        until(lambda: made.cluster.up("day") == 0, 20)
        assert waker.whole("night").awake
        last = max(
            number for number, (name, count) in enumerate(made.cluster.changes) if name == "day-rank1" and not count
        )
        first = made.cluster.changes.index(("night-rank0", 1))
        assert last < first


def test_a_request_that_comes_while_it_goes_wakes_it_again(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.tell(chat={"idle_seconds": 2})
        waker = made.waker()
        model = awake(made, waker, "chat")
        model.drain = 3.0
        until(lambda: made.cluster.up("chat") == 0, 20)
        assert waker.whole("chat").awake
        assert made.cluster.changes[-4:] == [(one, count) for count in (0, 1) for one in model.sets]


def test_a_failed_start_is_told_in_words(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        model, waker = made.models["chat"], made.waker()
        waiting = waker.ask("chat")
        model.status = {"phase": "down", "cause": "failed 6 times in a row without a token: rail a has no carrier"}
        told = Told.of(waiting)
        waiting.close()
        assert (told.status, told.code) == (503, "model_not_up") and "rail a has no carrier" in told.words
        told = waker.whole("chat")
        assert (told.status, told.again) == (503, "60") and "rail a has no carrier" in told.words
        assert waker.state("chat") == "failed" and made.cluster.up("chat") == 2
        assert waker.series('sparkloom_waker_wakings_total{group="chat",model="chat",result="failed"}') == 1


def test_without_the_api_nothing_is_changed_and_words_say_why(tmp_path: Path) -> None:
    with site(tmp_path, "chat", "other") as made:
        made.tell(other={"idle_seconds": 1})
        waker = made.waker()
        awake(made, waker, "other")
        made.cluster.away, changes = True, len(made.cluster.changes)
        assert waker.whole("other").awake  # what answers is asked
        told = waker.whole("chat", stream=False)
        assert told.status == 503 and told.again
        until(lambda: "API answered 503" in waker.whole("chat").words, 60)
        assert len(made.cluster.changes) == changes
        made.cluster.away = False
        until(lambda: waker.whole("chat").awake, 20)


def test_a_renewed_token_is_used(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.waker()
        (made.given / "token").write_text("second")
        until(lambda: "Bearer second" in made.cluster.tokens, 20)


def test_one_that_takes_over_changes_nothing_until_the_other_left(tmp_path: Path) -> None:
    with site(tmp_path, "chat", "third") as made:
        first = made.waker()
        awake(made, first, "chat")
        second = made.waker()
        assert second.whole("chat").awake
        waiting = second.ask("third")
        time.sleep(3)
        assert made.cluster.up("third") == 0  # the first one decides
        threading.Thread(target=first.end, daemon=True).start()
        until(lambda: made.cluster.up("third") == 2, 6)
        assert first.get("/ready")[0] in (503, 0)
        assert Told.of(waiting).awake
        waiting.close()
        until(lambda: first.process.poll() == 0, 15)


def test_who_waits_when_it_leaves_is_told(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        waker = made.waker()
        waiting = waker.ask("chat")
        threading.Thread(target=waker.end, daemon=True).start()
        told = Told.of(waiting)
        assert (told.awake, told.code, told.again) == (False, "model_wakes", "5")
        waiting.close()


def raw(waker: Waker, text: bytes, size: int = 65536) -> bytes:
    with socket.create_connection(("127.0.0.1", waker.port), 10) as plug:
        plug.sendall(text)
        plug.shutdown(socket.SHUT_WR) if text.endswith(b"END") else None
        found = b""
        while piece := plug.recv(size):
            found += piece
        return found


def test_it_serves_only_groups_of_its_file_and_whole_requests(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        line = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
        assert b" 404 " in raw(waker, line + b"x-sparkloom-group: none\r\nContent-Length: 2\r\n\r\n{}")
        assert b" 404 " in raw(waker, line + b"Content-Length: 2\r\n\r\n{}")
        group = b"x-sparkloom-group: chat\r\n"
        assert b" 404 " in raw(waker, b"POST /metrics HTTP/1.1\r\n" + group + b"Content-Length: 0\r\n\r\n")
        assert b" 405 " in raw(waker, b"DELETE /v1/x HTTP/1.1\r\n" + group + b"\r\n")
        assert b" 431 " in raw(waker, line + b"x: " + b"y" * 70_000)
        both = b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b" 400 " in raw(waker, line + group + both)
        assert b" 400 " in raw(waker, line + group + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n")
        assert b" 400 " in raw(waker, b"POST /v1/x HTTP/1.0\r\n\r\n")
        assert b" 400 " in raw(waker, line + group + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert made.cluster.changes == []


def test_its_own_pages_keep_the_connection(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        connection = HTTPConnection("127.0.0.1", waker.port, timeout=10)
        plugs = set()
        for path, status in (("/ready", 200), ("/live", 200), ("/nothing", 404)):
            connection.request("GET", path)
            plugs.add(connection.sock)
            answer = connection.getresponse()
            assert answer.status == status and answer.read()
        assert len(plugs) == 1
        connection.close()


def test_who_waits_long_is_not_asked_for_all_the_time(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        waker = made.waker()
        open_ones = [waker.ask("chat") for _ in range(20)]
        time.sleep(2)
        before = len(made.cluster.tokens)
        time.sleep(8)
        assert len(made.cluster.tokens) - before < 8 / 2 * 6  # a look in 2 s: three lists, and the Lease
        for connection in open_ones:
            connection.close()
