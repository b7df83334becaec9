"""The program as its pod starts it, between real sockets: who asks, engines, and the cluster's API."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

from tests.onnode.waker.loopback import Model, Router, Site, Waker, site, until

TOKENS = b'data: {"token": 0}\n\ndata: {"token": 1}\n\ndata: {"token": 2}\n\ndata: [DONE]\n\n'


def events(body: bytes) -> bytes:
    """Without the comments."""
    return b"".join(part + b"\n\n" for part in body.split(b"\n\n") if part and not part.startswith(b":"))


def error(body: bytes) -> Any:
    return json.loads(events(body).removeprefix(b"data: "))["error"]


def awake(made: Site, waker: Waker, name: str) -> Model:
    for one in made.models[name].sets:
        made.cluster.scale(one, 1)
    until(lambda: waker.state(name) == "awake")
    return made.models[name]


def test_a_stream_wakes_its_group_and_is_piped_through(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        model, waker = made.models["chat"], made.waker()
        model.late = 1.5  # ready, and its port still closed
        assert waker.state("chat") == "asleep"
        status, headers, body = waker.whole("chat", {"stream": True, "model": "chat"})
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert body.startswith(b": chat ") and events(body) == TOKENS
        assert [(one, 1) for one in model.sets] == made.cluster.changes
        asked, content = model.asked[0]
        assert len(model.asked) == 1 and json.loads(content) == {"stream": True, "model": "chat"}
        assert asked["authorization"] == "Bearer sk-own" and "x-sparkloom-group" not in asked
        assert waker.series('sparkloom_waker_wakings_total{group="chat",model="chat",result="ready"}') == 1
        status, headers, body = waker.whole("chat")  # awake: as the engine says it
        assert (status, body) == (200, TOKENS)


def test_all_who_ask_share_one_start(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker, answers = made.waker(), list[tuple[int, bytes]]()

        def one() -> None:
            status, _, body = waker.whole("chat")
            answers.append((status, events(body)))

        threads = [threading.Thread(target=one) for _ in range(64)]
        for thread in threads:
            thread.start()
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 64)
        status, headers, body = waker.whole("chat")
        assert (status, json.loads(body)["error"]["code"], headers["retry-after"]) == (503, "queue_full", "5")
        for thread in threads:
            thread.join()
        assert answers == [(200, TOKENS)] * 64
        assert made.cluster.changes == [("chat-rank0", 1), ("chat-rank1", 1)]


def test_without_a_stream_it_is_said_when_to_try_again(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=8.0) as made:
        waker = made.waker()
        begun = time.monotonic()
        status, headers, body = waker.whole("chat", {"stream": False})
        assert 4 < time.monotonic() - begun < 8
        told = json.loads(body)["error"]
        assert (status, told["code"], headers["retry-after"]) == (503, "model_wakes", "60")
        assert told["message"].startswith("chat starts since ") and "try again in 8 min" in told["message"]
        until(lambda: waker.state("chat") == "awake")
        assert waker.whole("chat", {"stream": False})[0] == 200


def test_without_a_stream_one_that_is_nearly_there_is_waited_for(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=1.0) as made:
        assert made.waker().whole("chat", {"stream": False})[0] == 200


def test_a_client_that_leaves_has_its_engine_s_connection_closed(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        model, waker = made.models["chat"], made.waker()
        model.tokens, model.pause = 10_000, 0.01
        connection, answer = waker.ask("chat")
        until(lambda: model.open == 1)
        assert answer.read(20)
        answer.close()
        connection.close()
        until(lambda: model.open == 0, 3)
        assert model.left == 1
        gone, _ = waker.ask("chat")  # and again
        until(lambda: model.open == 1)
        gone.close()
        _.close()
        until(lambda: model.open == 0, 3)


def test_a_waiting_client_that_leaves_asks_no_engine(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=2.0) as made:
        model, waker = made.models["chat"], made.waker()
        connection, answer = waker.ask("chat")
        assert answer.read1(10)
        answer.close()
        connection.close()
        until(lambda: waker.series('sparkloom_waker_waiting{group="chat",model="chat"}') == 0)
        until(lambda: waker.state("chat") == "awake")  # what was begun goes on
        time.sleep(1)
        assert not model.asked


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
        until(lambda: waker.state("chat") == "asleep")
        assert waker.series('sparkloom_waker_sleeps_total{group="chat",model="chat"}') == 1
        assert made.cluster.changes[-2:] == [("chat-rank0", 0), ("chat-rank1", 0)]
        assert events(waker.whole("chat")[2]) == TOKENS  # and wakes again


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
        until(lambda: made.cluster.up("chat") == 0)


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
        until(lambda: made.cluster.up("chat") == 0)


def test_mates_take_turns(tmp_path: Path) -> None:
    with site(tmp_path, "day", "night") as made:
        turn = {"turn": "desk", "idle_seconds": 4}
        made.tell(day=turn, night=turn)
        waker = made.waker()
        assert events(waker.whole("day")[2]) == TOKENS
        status, headers, body = waker.whole("night")
        told = json.loads(body)["error"]
        assert (status, told["code"], headers["retry-after"]) == (503, "model_in_turn", "5")
        assert "night takes turns with day" in told["message"]
        until(lambda: made.cluster.up("day") == 0)
        assert events(waker.whole("night")[2]) == TOKENS
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
        until(lambda: made.cluster.up("chat") == 0)
        assert events(waker.whole("chat")[2]) == TOKENS
        assert made.cluster.changes[-4:] == [(one, count) for count in (0, 1) for one in model.sets]


def test_a_failed_start_is_told_in_words(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        model, waker = made.models["chat"], made.waker()
        connection, answer = waker.ask("chat")
        assert answer.status == 200
        model.status = {"phase": "down", "cause": "failed 6 times in a row without a token: rail a has no carrier"}
        told = error(answer.read())
        connection.close()
        assert told["code"] == "model_not_up" and "rail a has no carrier" in told["message"]
        status, headers, body = waker.whole("chat")
        assert (status, headers["retry-after"]) == (503, "60") and "rail a has no carrier" in body.decode()
        assert waker.state("chat") == "failed" and made.cluster.up("chat") == 2
        assert waker.series('sparkloom_waker_wakings_total{group="chat",model="chat",result="failed"}') == 1


def test_an_engine_s_error_is_one_event_of_a_stream_that_began(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        model, waker = made.models["chat"], made.waker()
        model.answer = (400, b'{"error": {"message": "too long", "code": 400}}')
        status, _, body = waker.whole("chat")
        assert status == 200 and error(body) == {"message": "too long", "code": 400}
        assert waker.whole("chat")[::2] == (400, model.answer[1])  # awake: its own status


def test_a_stream_whose_engine_dies_breaks_off(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        model, waker = made.models["chat"], made.waker()
        model.dies_after = 2
        connection, answer = waker.ask("chat")
        try:
            answer.read()
        except Exception as broken:
            assert type(broken).__name__ in ("IncompleteRead", "ConnectionResetError")
        else:
            raise AssertionError("it looks whole")
        finally:
            connection.close()
        assert len(model.asked) == 1  # never again after the first byte


def test_without_the_api_nothing_is_changed_and_words_say_why(tmp_path: Path) -> None:
    with site(tmp_path, "chat", "other") as made:
        made.tell(other={"idle_seconds": 1})
        waker = made.waker()
        awake(made, waker, "other")
        made.cluster.away, changes = True, len(made.cluster.changes)
        assert waker.whole("other")[0] == 200  # what answers is asked
        status, headers, _ = waker.whole("chat", {"stream": False})
        assert status == 503 and headers["retry-after"]
        until(lambda: "API answered 503" in waker.whole("chat")[2].decode(), 60)
        assert len(made.cluster.changes) == changes
        made.cluster.away = False
        until(lambda: waker.whole("chat")[0] == 200)


def test_a_renewed_token_is_used(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        made.waker()
        (made.given / "token").write_text("second")
        until(lambda: "Bearer second" in made.cluster.tokens)


def test_one_that_takes_over_changes_nothing_until_the_other_left(tmp_path: Path) -> None:
    with site(tmp_path, "chat", "third") as made:
        first = made.waker()
        model = made.models["chat"]
        model.tokens, model.pause = 60, 0.1
        connection, answer = first.ask("chat")
        until(lambda: model.open == 1)
        second = made.waker()
        told, waits = second.ask("third")
        time.sleep(3)
        assert made.cluster.up("third") == 0  # the first one decides
        threading.Thread(target=first.end, daemon=True).start()
        until(lambda: made.cluster.up("third") == 2, 6)
        assert first.get("/ready")[0] in (503, 0)
        assert b"DONE" in waits.read()
        assert b"DONE" in answer.read()  # what it passes on comes to its end
        connection.close()
        told.close()
        until(lambda: first.process.poll() == 0, 15)


def test_who_waits_when_it_leaves_is_told(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        waker = made.waker()
        connection, answer = waker.ask("chat")
        threading.Thread(target=waker.end, daemon=True).start()
        assert error(answer.read())["code"] == "model_wakes"
        connection.close()


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
        assert b" 413 " in raw(waker, line + group + b"Content-Length: 104857601\r\n\r\n")
        assert b" 431 " in raw(waker, line + b"x: " + b"y" * 70_000)
        both = b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b" 400 " in raw(waker, line + group + both)
        assert b" 400 " in raw(waker, line + group + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n")
        assert b" 400 " in raw(waker, b"POST /v1/x HTTP/1.0\r\n\r\n")
        assert b" 400 " in raw(waker, line + group + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert made.cluster.changes == []
        chunks = line + group + b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"stream\r\n8\r\n": true}\r\n0\r\n\r\n'
        assert b"[DONE]" in raw(waker, chunks)
        assert made.models["chat"].asked[0][1] == b'{"stream": true}'


def test_its_own_pages_keep_the_connection(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        with socket.create_connection(("127.0.0.1", waker.port), 10) as plug:
            for path in (b"/ready", b"/live", b"/nothing"):
                plug.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (b" 404 " if path == b"/nothing" else b" 200 ") in plug.recv(4096)


def test_a_slow_reader_holds_its_engine_back_and_nobody_else(tmp_path: Path) -> None:
    with site(tmp_path, "chat") as made:
        waker = made.waker()
        model = awake(made, waker, "chat")
        model.tokens, model.pause = 300_000, 0.0
        slow, answer = waker.ask("chat")
        answer.read(10)
        time.sleep(2)
        before = _memory(waker)
        time.sleep(2)
        assert model.open == 1 and _memory(waker) - before < 4 << 20
        model.tokens = 3
        assert waker.whole("chat")[2] == TOKENS
        answer.close()
        slow.close()


def _memory(waker: Waker) -> int:
    text = Path(f"/proc/{waker.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def test_who_waits_long_is_not_asked_for_all_the_time(tmp_path: Path) -> None:
    with site(tmp_path, "chat", load=30.0) as made:
        waker = made.waker()
        open_ones = [waker.ask("chat") for _ in range(20)]
        time.sleep(2)
        before = len(made.cluster.tokens)
        time.sleep(8)
        assert len(made.cluster.tokens) - before < 8 / 2 * 5  # a look in 2 s: two lists, and the Lease
        for connection, answer in open_ones:
            answer.close()
            connection.close()
