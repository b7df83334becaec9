"""The OpenAI part of the API: chat and completions, whole and streamed, in each engine's shape."""

from __future__ import annotations

import time
import uuid
from contextlib import aclosing
from typing import Any

from standin import ask
from standin.config import Config
from standin.generate import Job, Model, RequestFailed
from standin.web import Request

Fields = dict[str, Any]


class Speaker:
    """One request's way from question to JSON."""

    def __init__(self, config: Config, model: Model, context: int, request: Request, chat: bool) -> None:
        self.config, self.model, self.request, self.chat = config, model, request, chat
        body = request.json()
        self.question = (ask.chat if chat else ask.completion)(config, body, context)
        self.name = body.get("model") if config.engine == "sglang" and body.get("model") else config.served_name
        prefix = "" if config.engine == "sglang" else "chatcmpl-" if chat else "cmpl-"
        self.id, self.call_id = prefix + uuid.uuid4().hex, f"call_{uuid.uuid4().hex[:24]}"
        self.thought = "reasoning" if config.engine == "vllm" else "reasoning_content"
        q = self.question
        self.job = Job(q.pieces, q.prompt_tokens, q.seed, lambda: request.left, self.id, q.finish)

    async def answer(self) -> None:
        try:
            if self.question.stream:
                await self._stream()
            else:
                await self._whole()
        except RequestFailed as failure:
            if self.question.stream:
                self.request.begin_stream()
                await self.request.event({"error": self.error(str(failure), 500)})
                await self.request.end_stream()
            else:
                await self.request.reply(500, failure_body(self.config, str(failure), 500))

    def error(self, text: str, code: int) -> Fields:
        return {"object": "error", "message": text, "type": "InternalServerError", "param": None, "code": code}

    def usage(self) -> Fields:
        prompt, tokens = self.question.prompt_tokens, self.job.tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + tokens, "completion_tokens": tokens}

    def _base(self, kind: str) -> Fields:
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.name}

    async def _stream(self) -> None:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        base, begun = self._base(kind), False

        async def send(choices: list[Fields], usage: bool = False) -> None:
            extra = {"usage": self.usage()} if usage or self.question.usage_always else {}
            await self.request.event({**base, "choices": choices, **extra})

        async def begin() -> None:
            """With the first token, as the engines do: a proxy breaks off what is answered while it still sends."""
            self.request.begin_stream()
            if self.chat:
                await send([self._choice({"role": "assistant", "content": ""})])
                if self.question.tool:
                    await send([self._choice(self._call("", start=True))])

        async with aclosing(self.model.run(self.job)) as steps:
            async for step in steps:
                if not begun:
                    await begin()
                begun = True
                for channel in dict.fromkeys(channel for channel, _ in step):
                    text = "".join(piece for where, piece in step if where == channel)
                    await send([self._choice(self._delta(channel, text))])
        if not begun:
            await begin()
        await send([self._choice({} if self.chat else "", self.job.finish)])
        if self.question.usage:
            await send([], usage=True)
        await self.request.end_stream()

    def _choice(self, delta: Fields | str, finish: str | None = None) -> Fields:
        piece = {"delta": delta} if self.chat else {"text": delta}
        return {"index": 0, **piece, "logprobs": None, "finish_reason": finish}

    def _delta(self, channel: str, text: str) -> Fields | str:
        if not self.chat:
            return text
        if channel == ask.CALL:
            return self._call(text)
        return {self.thought if channel == "reasoning" else "content": text}

    def _call(self, arguments: str, start: bool = False) -> Fields:
        function: Fields = {"arguments": arguments}
        call: Fields = {"index": 0, "function": function}
        if start:
            function["name"] = self.question.tool
            call |= {"id": self.call_id, "type": "function"}
        return {"tool_calls": [call]}

    async def _whole(self) -> None:
        texts: dict[str, str] = {}
        async with aclosing(self.model.run(self.job)) as steps:
            async for step in steps:
                for channel, piece in step:
                    texts[channel] = texts.get(channel, "") + piece
        choice: Fields = {"index": 0, "logprobs": None, "finish_reason": self.job.finish}
        if self.chat:
            message: Fields = {"role": "assistant", "content": texts.get("content")}
            message[self.thought] = texts.get("reasoning")
            message["tool_calls"] = self._whole_call(texts[ask.CALL]) if ask.CALL in texts else None
            choice["message"] = message
        else:
            choice["text"] = texts.get("content", "")
        kind = "chat.completion" if self.chat else "text_completion"
        await self.request.reply(200, {**self._base(kind), "choices": [choice], "usage": self.usage()})

    def _whole_call(self, arguments: str) -> list[Fields]:
        function = {"name": self.question.tool, "arguments": arguments}
        return [{"id": self.call_id, "index": 0, "type": "function", "function": function}]


def failure_body(config: Config, text: str, code: int) -> Fields:
    kind = {400: "BadRequestError", 404: "NotFoundError", 500: "InternalServerError"}.get(code, "Error")
    if config.engine == "sglang":
        return {"object": "error", "message": text, "type": kind.removesuffix("Error"), "param": None, "code": code}
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}
