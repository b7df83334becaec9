"""Holds a request while its group starts, hands it on when it is ready, and says in words why not.

The router asks here, after it has looked at the client's key and put the engine's own in its place; no policy lets
anybody else in, and only a group of the file is asked for anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable

from sparkloom.onnode import prometheus
from sparkloom.onnode.rank import waits
from sparkloom.onnode.waker import body as bodies
from sparkloom.onnode.waker import engine, metrics, refusal, wire
from sparkloom.onnode.waker.body import Body, Room
from sparkloom.onnode.waker.engine import Lost, Reply
from sparkloom.onnode.waker.groups import PLACE, Groups
from sparkloom.onnode.waker.keeper import Keeper
from sparkloom.onnode.waker.refusal import Refusal
from sparkloom.onnode.waker.told import Group
from sparkloom.onnode.waker.wire import Head, Wrong

READY, LIVE, METRICS = "/ready", "/live", "/metrics"
JSON, TEXT, EVENTS = "application/json", "text/plain; charset=utf-8", "text/event-stream"
PATIENCE = 5.0  # seconds in which one who cannot be told anything meanwhile is held
COMMENT = 10.0  # seconds between words to one who can
IDLE = 60.0  # of a connection that asks nothing
WHOLE = 300.0  # for a request to come whole
SMALL = 1 << 18  # bytes of a body that is read in no time
ERROR = 64 << 10  # bytes of an engine's error that are handed on as an event
STUCK = 300.0  # seconds without a round of the keeper
AT_ONCE = 4096 + 64  # connections


class Server:
    def __init__(self, groups: Groups, keeper: Keeper, room: Room, say: Callable[[str], None]) -> None:
        self.groups, self.keeper, self.room, self.say = groups, keeper, room, say
        self.longest = bodies.LONGEST
        self.patience = PATIENCE
        self.comment = COMMENT
        self.busy = 0  # requests that are being answered
        self._open = 0

    async def listen(self, address: str, port: int) -> asyncio.base_events.Server:
        return await asyncio.start_server(self._client, address, port, limit=wire.HEAD, backlog=512)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= AT_ONCE:
                await Client(self, reader, writer).talk()
        except (OSError, waits.Late, asyncio.CancelledError):  # it went away
            pass
        except Exception as error:  # what nobody thought of ends one connection, and is said
            self.say(f"a request ended by {type(error).__name__}: {error}")
        finally:
            self._open -= 1
            writer.transport.abort() if not writer.is_closing() else None

    def page(self, path: str) -> tuple[int, str, str] | None:
        """Status, kind and text."""
        if path == READY:
            ok = self.keeper.told.known and self.keeper.looked > float("-inf") and not self.groups.leaving
            return (200 if ok else 503), TEXT, "ready\n" if ok else f"not ready: {self.groups.problem or 'leaves'}\n"
        if path == LIVE:
            ok = self.groups.clock() - self.keeper.round_at < STUCK
            return (200 if ok else 503), TEXT, "alive\n" if ok else "no look at the cluster came to an end for long\n"
        return (200, prometheus.KIND, metrics.page(self.groups, self.keeper)) if path == METRICS else None


class Client:
    """One connection: questions of the kubelet and of a Prometheus one after the other, or a request."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.groups = server, server.groups
        self.reader, self.writer = reader, writer
        self.told = False  # a stream was begun, so what is said now is said in it

    async def talk(self) -> None:
        while True:
            try:
                asked = await asyncio.wait_for(wire.head(self.reader), IDLE)
                if asked is None:
                    return
                if asked.first[2] != "HTTP/1.1":
                    raise Wrong("HTTP/1.1 is spoken here")
                if asked.first[0] == "GET" and not asked.length and not asked.chunked:
                    if not await self._page(asked):
                        return
                    continue
                if asked.first[0] != "POST":
                    raise Wrong("POST and GET are all there is here", 405)
                await self._post(asked)
            except Wrong as error:
                if not self.told:
                    await self._refuse(Refusal(error.status, "bad_request", str(error)))
            await self._end()
            return

    async def _end(self) -> None:
        """What was written goes out; a body that nobody read is thrown away with the connection."""
        with contextlib.suppress(OSError, waits.Late):
            await asyncio.wait_for(self.writer.drain(), IDLE)
            if self.writer.can_write_eof():
                self.writer.write_eof()
            await asyncio.wait_for(self._rest(), 2.0)

    async def _rest(self) -> None:
        """Who is answered while he still sends would find a closed connection, and no answer."""
        while await self.reader.read(wire.PIECE):
            pass

    async def _page(self, asked: Head) -> bool:
        close = "close" in asked.get("connection").lower()
        status, kind, text = self.server.page(asked.first[1].partition("?")[0]) or (404, TEXT, "no such page here\n")
        self.writer.write(wire.answer(status, kind, text.encode(), {}, close=close))
        await self.writer.drain()
        return not close

    async def _post(self, asked: Head) -> None:
        name = asked.get(engine.OUR_HEADER)
        if not asked.first[1].startswith("/v1/") or name not in self.groups.states:
            return await self._refuse(refusal.unknown(name))
        body = Body(self.server.room, self.server.longest)
        self.server.busy += 1
        try:
            await asyncio.wait_for(self._read(asked, body), WHOLE)
            await self._watched(self._served(name, asked, body))
        except bodies.Full:
            await self._refuse(refusal.crowded())
        finally:
            self.server.busy -= 1
            body.end()

    async def _read(self, asked: Head, body: Body) -> None:
        if asked.length is not None:
            body.expect(asked.length)
        if asked.get("expect").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for piece in wire.pieces(self.reader, asked):
            body.add(piece)

    async def _watched(self, work: object) -> None:
        """For as long as its client is there."""
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        gone = asyncio.ensure_future(self.reader.read(1))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and (gone.exception() or not gone.result()):
                task.cancel()
            await task
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await gone
            if not task.done():
                task.cancel()

    async def _served(self, name: str, asked: Head, body: Body) -> None:
        content = body.content
        small = len(content) <= SMALL
        stream = bodies.streams(content) if small else await asyncio.to_thread(bodies.streams, content)
        if (refused := self.groups.ask(name)) or (refused := await self._wait(name, stream)):
            return await self._refuse(refused)
        group = self.groups.states[name].group
        self.groups.pipe(name)
        try:
            await self._pipe(group, asked, body)
        finally:
            self.groups.piped(name)

    async def _wait(self, name: str, stream: bool) -> Refusal | None:
        """None when the group answers."""
        begun = said = self.groups.clock()
        longest = self.groups.states[name].group.limit_seconds + PLACE
        self.groups.enter(name)
        if not self.groups.states[name].ready:
            self.server.keeper.asked.set()
        try:
            while (verdict := self.groups.verdict(name)) is False:
                now = self.groups.clock()
                if now - begun >= (longest if stream else self.server.patience):
                    return self.groups.wakes(name)
                if stream and (not self.told or now - said >= self.server.comment):
                    said = now
                    await self._comment(name)
                rest = said + self.server.comment - now if stream else self.server.patience - (now - begun)
                await self.server.keeper.changed.wait(max(0.01, rest))
            return None if verdict is True else verdict
        finally:
            self.groups.leave(name)

    async def _comment(self, name: str) -> None:
        if not self.told:
            headers = [("content-type", EVENTS), ("cache-control", "no-store"), ("transfer-encoding", "chunked")]
            self.writer.write(wire.written("HTTP/1.1 200 OK", [*headers, ("connection", "close")]))
            self.told = True
        self.writer.write(wire.chunk(f": {self.groups.progress(name)}\n\n".encode()))
        await self.writer.drain()

    async def _pipe(self, group: Group, asked: Head, body: Body) -> None:
        try:
            reply = await engine.ask(group, asked, body.content, self.groups.clock)
        except Lost as error:
            self.server.say(f"{group.name} was ready and gave no answer: {error}")
            return await self._refuse(refusal.lost(group.name))
        body.end()
        try:
            if not self.told:
                await self._whole(reply)
            elif reply.status == 200 and reply.head.get("content-type").lower().startswith(EVENTS):
                await self._events(reply)
            else:
                await self._as_event(reply)
        except (Wrong, EOFError):  # it broke off: so does this, as it would without us
            self.writer.transport.abort()
        finally:
            reply.close()

    async def _whole(self, reply: Reply) -> None:
        """The engine's answer as it is."""
        version, status, reason = "HTTP/1.1", *reply.head.first[1:]
        sized = not reply.head.chunked and bool(reply.head.all("content-length"))
        framed = [("content-length", reply.head.get("content-length"))] if sized else []
        if not sized and not reply.bodiless:
            framed = [("transfer-encoding", "chunked")]
        headers = [*reply.head.passed_on, *framed, ("connection", "close")]
        self.writer.write(wire.written(f"{version} {status} {reason}", headers))
        async for piece in reply.pieces():
            self.writer.write(piece if sized else wire.chunk(piece))
            await self.writer.drain()
        if not sized and not reply.bodiless:
            self.writer.write(wire.LAST)

    async def _events(self, reply: Reply) -> None:
        async for piece in reply.pieces():
            self.writer.write(wire.chunk(piece))
            await self.writer.drain()
        self.writer.write(wire.LAST)

    async def _as_event(self, reply: Reply) -> None:
        """What is no stream, in one that has begun."""
        content = bytearray()
        async for piece in reply.pieces():
            content += piece
            if len(content) > ERROR:
                break
        text = bytes(content[:ERROR]).decode(errors="replace")
        try:
            told = json.loads(text)
        except ValueError:
            told = {"error": {"message": text, "type": "server_error", "code": str(reply.status)}}
        if reply.status != 200 and not (isinstance(told, dict) and "error" in told):
            told = {"error": {"message": text, "type": "server_error", "code": str(reply.status)}}
        await self._event(json.dumps(told).encode())

    async def _event(self, data: bytes) -> None:
        self.writer.write(wire.chunk(b"data: " + data + b"\n\n") + wire.LAST)
        await self.writer.drain()

    async def _refuse(self, why: Refusal) -> None:
        if self.told:
            return await self._event(why.body())
        more = {} if why.again is None else {"retry-after": str(why.again)}
        self.writer.write(wire.answer(why.status, JSON, why.body(), more, close=True))
        await self.writer.drain()
